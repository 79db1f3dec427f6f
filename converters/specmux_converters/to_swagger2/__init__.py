"""Convert OpenAPI v3 to Swagger 2.0: ``from_swagger2`` backwards, by its keyword tables.

Depends on documents, references and losses; on no codec.
"""

"""Convert OpenAPI v3 to Swagger 2.0: the reverse of ``swagger2``, whose keyword tables it reads backwards.

Depends on documents, references and losses; on no codec.
"""

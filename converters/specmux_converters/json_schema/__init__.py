"""Convert OpenAPI v3 documents to JSON Schemas (draft-07) of their kinds, for editors and CI.

Depends on documents, their group-versions and references; on no codec, and not on Swagger 2.0.
"""

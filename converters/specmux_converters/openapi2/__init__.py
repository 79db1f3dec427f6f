"""OpenAPI v3 to Swagger 2.0: the way back from ``swagger2``, whose tables of keywords it reads backwards.

It knows documents, references and losses; no codec.
"""

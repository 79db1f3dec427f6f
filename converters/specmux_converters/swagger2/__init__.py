"""Swagger 2.0 to OpenAPI 3.0, one module for each kind of object that the two standards name.

It knows documents, parts, losses and what is remembered of the last conversion; no codec.
"""

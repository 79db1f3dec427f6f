"""Convert Swagger 2.0 to OpenAPI 3.0, with one module for each kind of object in the two standards.

Depends on documents, parts, losses and the memo of the last conversion; on no codec.
"""

"""HTTP caching by RFC 9111, and a client's requests: header fields, freshness, transport.

Depends on the package's errors; knows nothing of the store or of OpenAPI.
"""

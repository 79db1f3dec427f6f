"""HTTP caching as RFC 9111 has it, and the requests that a client sends: header fields, freshness, transport.

It knows the package's errors and nothing of the store or of OpenAPI.
"""

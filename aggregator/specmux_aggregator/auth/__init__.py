"""Authentication and authorization of callers, by token or certificate.

Depends on the server's protocols, upstream for reviews, and HTTP values; knows nothing of what is served.
"""

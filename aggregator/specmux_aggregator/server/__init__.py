"""HTTP towards clients: listen, accept, TLS, read requests, write prepared answers.

Depends on protocols of what answers, the configuration and HTTP values; knows no document and no backend.
"""

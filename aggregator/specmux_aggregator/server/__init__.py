"""HTTP towards clients: listening, connections, TLS, reading requests, writing prepared answers.

It knows protocols of what answers, the configuration and HTTP values; no document and no backend.
"""

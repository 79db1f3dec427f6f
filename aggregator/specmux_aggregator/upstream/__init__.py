"""HTTP towards backends: connections, credentials, strict parsing of answers.

Depends on the configuration, the model and HTTP values; knows nothing of clients.
"""

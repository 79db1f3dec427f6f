"""HTTP towards backends: connections, credentials, strict reading of what they answer.

It knows the configuration, the model and HTTP values; nothing of clients.
"""

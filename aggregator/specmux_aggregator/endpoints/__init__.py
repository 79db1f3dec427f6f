"""Endpoints: documents, discovery, health, status; each a decision over the state of one moment.

Depends on the packages that hold that state; knows nothing of sockets.
"""

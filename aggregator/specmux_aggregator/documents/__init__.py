"""The bytes of published documents in every form: kept in memory, kept on disk, fetched, encoded once.

It knows origins, build and upstream; nothing of who asks.
"""

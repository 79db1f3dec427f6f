"""The bytes of published documents in every form: kept in memory and on disk, fetched, encoded once.

Depends on origins, jobs and upstream; knows nothing of clients.
"""

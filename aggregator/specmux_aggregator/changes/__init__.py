"""Changes of published documents: compared in a worker, logged, stored and streamed.

Depends on documents, build and the server's protocols; receives each Snapshot.
"""

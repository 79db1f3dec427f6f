"""What changed in the documents that were published: compared in the worker, logged, kept, and streamed.

It knows documents, build and the server's protocols, and is told of each Snapshot.
"""

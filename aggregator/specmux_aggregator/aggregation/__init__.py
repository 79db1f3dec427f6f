"""From observations of backends to the Snapshot: one loop per backend, ownership, publication.

Depends on origins and documents; knows nothing of requests.
"""

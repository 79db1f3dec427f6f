"""Discovery of APIs (``/api``, ``/apis``, ``/version``): requested from every backend, merged, and answered.

Depends on the Snapshot, documents and upstream; knows nothing of requests.
"""

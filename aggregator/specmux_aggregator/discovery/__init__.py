"""Discovery of APIs (``/api``, ``/apis``, ``/version``): asked of every backend, merged, and answered.

It knows the Snapshot, documents and upstream; nothing of requests.
"""

"""Discovery of APIs (``/api``, ``/apis``, ``/version``): asked of every backend, merged, and answered."""

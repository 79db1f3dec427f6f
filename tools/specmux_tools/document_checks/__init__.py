"""Check documents against their standard, and against what their group-version promises.

``document`` checks one, ``results`` many at once, and caches findings. A megabyte takes seconds, so never on
the way to a client. Depends on the converters and the model's keys; knows nothing of the service."""

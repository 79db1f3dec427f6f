"""A bounded, compactable, crash-safe disk cache for clients of ``/openapi/v3``.

    from specmux_cache import SchemaCache

    with SchemaCache("http://127.0.0.1:8001") as cache:
        deployment = cache.spec("apps/v1")["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]

What a name needs is imported when the name is first used: the HTTP library alone takes a tenth of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy.names import lazy_names

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_cache.client import AsyncSchemaCache
    from specmux_cache.errors import CacheError, GroupVersionNotFound, KindNotFound, KubeconfigError
    from specmux_cache.reading.client_runtime import Event
    from specmux_cache.reading.options import CacheOptions
    from specmux_cache.reading.results import Schema
    from specmux_cache.store.disk_store import DiskStore, StoreLimits
    from specmux_cache.sync import SchemaCache

__all__ = [
    "AsyncSchemaCache",
    "CacheError",
    "CacheOptions",
    "DiskStore",
    "Event",
    "GroupVersionNotFound",
    "KindNotFound",
    "KubeconfigError",
    "Schema",
    "SchemaCache",
    "StoreLimits",
]

_MODULES = {
    "client": "AsyncSchemaCache",
    "errors": "CacheError GroupVersionNotFound KindNotFound KubeconfigError",
    "reading.options": "CacheOptions",
    "store.disk_store": "DiskStore StoreLimits",
    "reading.results": "Schema",
    "reading.client_runtime": "Event",
    "sync": "SchemaCache",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)

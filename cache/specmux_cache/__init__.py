"""A bounded, compactable, crash-safe disk cache for clients of ``/openapi/v3``.

    from specmux_cache import SchemaCache

    with SchemaCache("http://127.0.0.1:8001") as cache:
        deployment = cache.spec("apps/v1")["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]

What a name needs is imported when the name is first used: the HTTP library alone takes a tenth of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # type checkers and editors; at run time __getattr__ does it
    from specmux_cache.client import AsyncSchemaCache
    from specmux_cache.errors import CacheError, GroupVersionNotFound, KindNotFound, KubeconfigError
    from specmux_cache.http.caching import Tolerance
    from specmux_cache.http.server import Server
    from specmux_cache.reading.options import CacheOptions
    from specmux_cache.reading.resources import KindResource
    from specmux_cache.reading.results import (
        CacheStats,
        Document,
        Event,
        MediaTypes,
        MergedDocument,
        Paths,
        PrefetchResult,
        Publication,
        Resource,
        Schema,
    )
    from specmux_cache.store.checking import StoreProblem
    from specmux_cache.store.compaction import CompactionReport
    from specmux_cache.store.disk_store import DiskStore, StoreLimits, StoreStats
    from specmux_cache.store.keys import Key
    from specmux_cache.store.rows import Row, StoredEntry
    from specmux_cache.sync import SchemaCache

__all__ = [
    "AsyncSchemaCache",
    "CacheError",
    "CacheOptions",
    "CacheStats",
    "CompactionReport",
    "DiskStore",
    "Document",
    "Event",
    "GroupVersionNotFound",
    "Key",
    "KindNotFound",
    "KindResource",
    "KubeconfigError",
    "MediaTypes",
    "MergedDocument",
    "Paths",
    "PrefetchResult",
    "Publication",
    "Resource",
    "Row",
    "Schema",
    "SchemaCache",
    "Server",
    "StoreLimits",
    "StoreProblem",
    "StoreStats",
    "StoredEntry",
    "Tolerance",
]

_MODULES = {
    "reading.resources": "KindResource",
    "store.checking": "StoreProblem",
    "store.keys": "Key",
    "store.rows": "Row StoredEntry",
    "store.compaction": "CompactionReport",
    "http.caching": "Tolerance",
    "http.server": "Server",
    "client": "AsyncSchemaCache",
    "errors": "CacheError GroupVersionNotFound KindNotFound KubeconfigError",
    "reading.options": "CacheOptions",
    "store.disk_store": "DiskStore StoreLimits StoreStats",
    "reading.results": (
        "CacheStats Document Event MediaTypes MergedDocument Paths PrefetchResult Publication Resource Schema"
    ),
    "sync": "SchemaCache",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)

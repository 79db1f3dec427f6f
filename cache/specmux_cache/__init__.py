"""A bounded, compactable, crash-safe disk cache for clients of ``/openapi/v3``."""

from specmux_cache.client import AsyncSchemaCache
from specmux_cache.errors import CacheError, GroupVersionNotFound
from specmux_cache.events import Event
from specmux_cache.options import CacheOptions
from specmux_cache.results import Schema
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.sync import SchemaCache

__all__ = [
    "AsyncSchemaCache",
    "CacheError",
    "CacheOptions",
    "DiskStore",
    "Event",
    "GroupVersionNotFound",
    "Schema",
    "SchemaCache",
    "StoreLimits",
]

"""A bounded, compactable, crash-safe disk cache for clients of ``/openapi/v3``."""

from .client import AsyncSchemaCache
from .errors import CacheError, GroupVersionNotFound
from .events import Event
from .options import CacheOptions
from .results import Schema
from .store import DiskStore, StoreLimits
from .sync import SchemaCache

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

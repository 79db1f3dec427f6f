"""Events of a client, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from specmux_cache.store.disk_store import StoreStats
from specmux_converters.deferred_dataclasses import dataclass

EventKind: TypeAlias = Literal[
    "hit",  # answered from the cache without a request
    "stale",  # answered from the cache although a request was due
    "revalidated",  # 304
    "fetched",  # a body came from the server
    "redirected",  # a stale hash
    "refused",  # 406 or 415
    "not_stored",  # fetched but not stored: no-store, or no room
    "failed",  # the server returned nothing usable
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``name``: a group-version, or a path with its leading slash."""

    kind: EventKind
    name: str
    size: int = 0
    """Bytes of the body."""
    seconds: float = 0.0
    """From the request to the complete answer."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Counters of one client, and the state of its directory."""

    events: Mapping[EventKind, int]
    bytes_fetched: int
    decoded: int
    """Decoded documents in memory."""
    store: StoreStats | None
    """None in memory."""


class EventLog:
    """Counts events and passes them on. The hook is called on the event loop: it must not block or raise."""

    def __init__(self, hook: Callable[[Event], None] | None) -> None:
        self._hook = hook
        self._counts: Counter[EventKind] = Counter(dict.fromkeys(get_args(EventKind), 0))
        self.bytes_fetched = 0

    def record(self, kind: EventKind, name: str, *, size: int = 0, seconds: float = 0.0) -> None:
        self._counts[kind] += 1
        if kind == "fetched":
            self.bytes_fetched += size
        if self._hook is not None:
            self._hook(Event(kind, name, size, seconds))

    def counts(self) -> Mapping[EventKind, int]:
        return MappingProxyType(dict(self._counts))

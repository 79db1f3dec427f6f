"""Answers of the servers behind one address; each expires after it has not been seen for long. No clock of
its own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

SILENT_READS: Final = 24
SILENT_SECONDS: Final = 60.0
"""A server is gone after this many answers over this many seconds without one of its own: of three servers
chosen at random, one is missed that often once in 17,000 times."""

OUTGROWN_READS: Final = 8
"""The same for one that another of its release has outgrown: a starting server publishes more and more."""

SERVERS_MAX: Final = 16

T = TypeVar("T")


@dataclass(slots=True)
class _Sighting(Generic[T]):
    value: T
    reads: int
    """The number of the last answer that was this one."""
    moment: float


class Sightings(Generic[T]):
    """Answers by what distinguishes them. ``now``: monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seen: dict[str, _Sighting[T]] = {}
        self._reads = 0

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, name: str, value: T) -> None:
        self._reads += 1
        self._seen[name] = _Sighting(value, self._reads, self._now())
        if len(self._seen) > SERVERS_MAX:
            del self._seen[min(self._seen, key=lambda each: self._seen[each].reads)]

    def get(self, name: str) -> T | None:
        seen = self._seen.get(name)
        return None if seen is None else seen.value

    def items(self) -> list[tuple[str, T]]:
        return [(name, seen.value) for name, seen in self._seen.items()]

    def forget(self, name: str) -> None:
        self._seen.pop(name, None)

    def clear(self) -> None:
        self._seen.clear()

    def expire(self, *, kept: Collection[str] = (), outgrown: Collection[str] = ()) -> None:
        """Drop answers not seen for long, except ``kept``; sooner those of ``outgrown``."""
        now = self._now()
        for name, seen in list(self._seen.items()):
            if name in kept:
                continue
            silent = self._reads - seen.reads
            is_outgrown = name in outgrown and silent >= OUTGROWN_READS
            if is_outgrown or (silent >= SILENT_READS and now - seen.moment >= SILENT_SECONDS):
                del self._seen[name]

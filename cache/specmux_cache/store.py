"""DiskStore: a bounded, compactable, crash-safe store of bodies under keys, shared by processes."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeVar

from .compaction import Compaction, CompactionReport, Goal
from .contents import Contents, unsealed
from .directory import RESERVE_FILE, fill_reserve, prepare, release_reserve
from .errors import StoreDamaged, StoreError, StoreFull, StoreUnavailable, cut
from .limits import StoreLimits
from .locks import locked
from .rows import Digest, Metadata, Row, Stored, key_range, key_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from .keys import Key

__all__ = [
    "CompactionReport",
    "Digest",
    "DiskStore",
    "Metadata",
    "Problem",
    "Row",
    "StoreLimits",
    "StoreStats",
    "Stored",
]

T = TypeVar("T")

LOCK: Final = "lock"
COMPACTION_LOCK: Final = "compaction.lock"
COMPACTED_AT: Final = "compacted_at"
ROOM_POLL: Final = 0.002
"""Seconds between two looks for room."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Counts of the directory, and what this object has seen since it was opened."""

    entries: int
    superseded: int
    bodies: int
    bytes_used: int
    """Allocated bytes of all in the directory."""
    high_bytes: int
    hits: int
    misses: int
    damaged: int
    """Bodies that were not what was stored, and were removed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that ``check`` found wrong."""

    kind: str
    """index | row | body | missing | orphan | size"""
    detail: str
    fixed: bool = False


class DiskStore:
    """Synchronous; safe across threads and processes. In an event loop, call it in threads.

    Raises StoreError: StoreFull and StoreBusy when a call could not be done, StoreUnavailable when the directory
    has gone or the store is closed. What is damaged is removed, and is a miss.
    """

    def __init__(
        self, directory: Path, limits: StoreLimits, *, clock: Callable[[], float], warn: Callable[[str], None]
    ) -> None:
        """Use ``open``."""
        self.directory = directory
        self.limits = limits
        self._clock = clock
        self._warn = warn
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._compactor: threading.Thread | None = None
        self._contents = self._opened()
        self._hits = self._misses = self._damaged = 0

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        limits: StoreLimits | None = None,
        clock: Callable[[], float] = time.time,
        warn: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Create the directory where it is missing. Raises StoreUnavailable.

        ``warn`` gets one line for what a user should know of, such as a damaged index that was set aside.
        """
        directory = directory.absolute()
        prepare(directory)
        try:
            return cls(directory, limits or StoreLimits(), clock=clock, warn=warn)
        except StoreUnavailable:
            raise
        except (StoreError, OSError) as error:
            raise StoreUnavailable(cut(str(error)), directory=str(directory)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop a compaction in the background and let go of the index. Twice is once."""
        self._closing.set()
        compactor = self._compactor
        if compactor is not None:
            compactor.join()
        self._contents.close()

    def get(self, key: Key) -> Stored | None:
        """The entry, its body verified against its sha256; None for none."""
        found = self._attempt(lambda contents: contents.load(key))
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        # That it was used is worth no wait and no failure.
        with contextlib.suppress(StoreError):
            self._contents.use(found.row, self._clock())
        return found

    def put(self, key: Key, body: bytes, *, metadata: Metadata, compress: bool = True) -> Digest:
        """Store, replacing what the key had. A body that is here already under any key is not written again.

        ``compress=False`` for bodies that are compressed. Metadata: a small flat mapping of JSON scalars.
        Raises ValueError for metadata that is too large or not JSON, StoreFull for a body that has no room.
        """
        if len(body) > self.limits.max_body_bytes:
            raise StoreFull("the body is larger than max_body_bytes", directory=str(self.directory))
        deadline = time.monotonic() + self.limits.room_timeout
        while True:
            digest = self._attempt(
                lambda contents: contents.insert(
                    key, body, metadata=metadata, compress=compress, now=self._clock()
                )
            )
            if digest is not None:
                self._compact_if_due()
                return digest
            self._compact_in_background()
            if time.monotonic() >= deadline:
                raise StoreFull("no room below high_bytes", directory=str(self.directory))
            time.sleep(ROOM_POLL)

    def touch(self, key: Key, *, metadata: Metadata) -> bool:
        """Revalidated: touched_at is now, these fields replace those of the same name. False for no such entry."""
        return self._attempt(lambda contents: contents.update(key, metadata=metadata, now=self._clock()))

    def delete(self, key: Key) -> bool:
        """Remove the entry, and its body when no other entry has it. False for no such entry."""

        def delete(contents: Contents) -> bool:
            raw = contents.index.entry(key_text(key))
            if raw is not None:
                contents.drop([raw])
            return raw is not None

        return self._attempt(delete)

    def rows(self, *prefix: str) -> Iterator[Row]:
        """Entries in the order of their keys: of all, of a server, a (server, partition), and so on to the
        media type. Bodies are not looked at. A snapshot page by page: entries put meanwhile may be missing.
        """
        low, high = key_range(*prefix)
        after = ""
        while page := self._attempt(lambda contents: contents.index.entries(low, high, after=after)):  # noqa: B023
            for raw in page:
                row = unsealed(raw)
                if row is not None:
                    yield row
            after = page[-1].key

    def compact(
        self, *, max_bytes: int | None = None, max_age: float | None = None, dry_run: bool = False
    ) -> CompactionReport:
        """Down to max_bytes (default: the low mark), without what was not used for max_age seconds.

        One runs at a time, over all processes; a second reports ``skipped="locked"``.
        """
        now = self._clock()
        goal = Goal(
            max_bytes=self.limits.low_bytes if max_bytes is None else max_bytes,
            unused_since=now - (self.limits.max_age if max_age is None else max_age),
        )
        with locked(self.directory / COMPACTION_LOCK, wait=False) as got:
            if not got:
                return CompactionReport(skipped="locked", dry_run=dry_run)
            # A connection of its own: threads of this process that read do not wait for its batches.
            contents = Contents(self.directory, self.limits)
            try:
                report = Compaction(contents, goal, now=now, stopped=self._closing.is_set).run()
                with contents.index.transaction():
                    contents.index.note(COMPACTED_AT, now)
            finally:
                contents.close()
            fill_reserve(self.directory, self.limits.reserve_bytes)
            return report

    def stats(self) -> StoreStats:
        entries, superseded, bodies = self._attempt(lambda contents: contents.index.counts())
        return StoreStats(
            entries=entries,
            superseded=superseded,
            bodies=bodies,
            bytes_used=self._attempt(lambda contents: contents.bytes_used()),
            high_bytes=self.limits.high_bytes,
            hits=self._hits,
            misses=self._misses,
            damaged=self._damaged,
        )

    def check(self, *, fix: bool = False) -> tuple[Problem, ...]:
        """Verify the index and every body. With ``fix``, remove what is wrong; safe beside readers and writers."""
        raise NotImplementedError

    def clear(self) -> int:
        """Remove all entries; how many."""
        removed = 0
        low, high = key_range()
        while page := self._attempt(lambda contents: contents.index.entries(low, high, limit=100)):
            self._attempt(lambda contents: contents.drop(page))  # noqa: B023
            removed += len(page)
        return removed

    def _attempt(self, work: Callable[[Contents], T]) -> T:
        """Do it; once more on a new index when this one turns out to be damaged or to have been set aside."""
        contents = self._current()
        try:
            return work(contents)
        except StoreDamaged:
            self._set_aside(contents)
            return work(self._current())

    def _current(self) -> Contents:
        if self._closing.is_set():
            raise StoreUnavailable("closed", directory=str(self.directory))
        contents = self._contents
        if contents.index.is_current():
            return contents
        with self._lock:
            if not self._contents.index.is_current():
                self._contents.close()
                self._contents = self._opened()
            return self._contents

    def _opened(self) -> Contents:
        with locked(self.directory / LOCK):
            try:
                contents = Contents(self.directory, self.limits)
            except StoreDamaged:
                self._rename_aside()
                contents = Contents(self.directory, self.limits)
            except StoreFull:
                if not release_reserve(self.directory):
                    raise
                return Contents(self.directory, self.limits)
            if not (self.directory / RESERVE_FILE).exists():
                fill_reserve(self.directory, self.limits.reserve_bytes)
            return contents

    def _set_aside(self, contents: Contents) -> None:
        with locked(self.directory / LOCK):
            if contents.index.is_current():
                self._rename_aside()

    def _rename_aside(self) -> None:
        self._warn(f"the index of {self.directory} is damaged: set aside, starting empty")
        for suffix in ("-wal", "-shm"):
            (self.directory / f"cache.db{suffix}").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.directory / "cache.db").replace(self.directory / "damaged.db")

    def _compact_if_due(self) -> None:
        noted = self._contents.index.noted(COMPACTED_AT)
        now = self._clock()
        due = noted is None or not 0 <= now - noted < self.limits.compact_interval
        if due or self._contents.bytes_used() > self.limits.high_bytes:
            self._compact_in_background()

    def _compact_in_background(self) -> None:
        with self._lock:
            if self._closing.is_set() or (self._compactor is not None and self._compactor.is_alive()):
                return
            self._compactor = threading.Thread(
                target=self._compact_quietly, name="specmux-compaction", daemon=True
            )
            self._compactor.start()

    def _compact_quietly(self) -> None:
        try:
            self.compact()
        except (StoreError, OSError) as error:
            self._warn(f"compaction failed: {cut(str(error))}")

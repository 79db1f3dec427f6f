"""DiskStore: a bounded, compactable, crash-safe store of bodies under keys, shared by processes."""

# Theory of operation
#
# The directory holds an SQLite index, in the file format of diskcache, and files of bodies named by their
# sha256. Every process that uses it opens it for itself. There is no daemon and no owner: what one process
# knows of the others it knows from the index and from three advisory locks.
#
# Small bodies stand in the row of their entry, others in a file that any number of entries name. A file is
# announced in the index as pending before it is written under a temporary name; it is renamed, and then the
# row is committed. A process killed in between leaves a pending row or an unnamed file, which counts
# towards the bound and which a later compaction sweeps. Nothing is synced: after a power failure a file may
# be short, and its reader notices.
#
# Nothing on disk is believed. A checksum covers each row with its key and digest. A body is verified
# against its sha256 each time it is read. What fails is removed and is a miss: a client fetches it again.
# An index that SQLite cannot read is renamed aside, by whoever notices first; the directory starts empty,
# and the files found are adopted as pending.
#
# ``_attempt`` is the one way into the index. It reopens the index when another process replaced the file,
# sets a damaged one aside, returns the write-ahead log's space to a full disk, and then tries once more.
#
# The bound counts allocated bytes of everything in the directory. A put that finds the store above
# ``high_bytes`` starts a compaction in a thread of this process and waits ``room_timeout`` for room; then
# it fails with StoreFull, and the caller has its answer all the same. A reserve file is given up when the
# disk is full, since deleting needs space as well.
#
# What must never happen: bytes returned that are not those that were put; a directory above its bound
# without a compaction to come; a directory changed that is not a cache of ours; a failure that costs more
# than a request.

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from specmux_cache.errors import (
    DiskFull,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from specmux_cache.store.contents import ACCESS_SECONDS, Contents, store_error_of
from specmux_cache.store.database import INDEX_FILE
from specmux_cache.store.directory import (
    DAMAGED_FILE,
    accept_read_only,
    fill_reserve,
    hold_lock,
    is_read_only,
    prepare,
    release_reserve,
)
from specmux_cache.store.keys import Key
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.rows import (
    Digest,
    Metadata,
    RawEntry,
    Row,
    StoredEntry,
    key_range,
    key_text,
    unseal_entry,
)
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # a command that reads a stored document needs it not
    from specmux_cache.store.checking import StoreProblem
    from specmux_cache.store.compaction import CompactionReport, Goal

__all__ = [
    "Digest",
    "DiskStore",
    "Metadata",
    "Row",
    "StoreLimits",
    "StoreStats",
    "StoredEntry",
]

T = TypeVar("T")

LOCK: Final = "lock"
"""Held while the index is opened, created or set aside."""
COMPACTION_LOCK: Final = "compaction.lock"
COMPACTED_AT: Final = "compacted_at"
ROOM_POLL: Final = 0.002
"""Seconds between two looks for room."""
CLEARED: Final = 50
"""Entries that one transaction of ``clear`` removes."""
DUE_POLL: Final = 60.0
"""Seconds between two looks at when the last compaction was."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The contents of the directory, and counters of this object since it was opened."""

    entries: int
    superseded: int
    bodies: int
    bytes_used: int
    """Allocated bytes of everything in the directory."""
    high_bytes: int
    hits: int
    misses: int
    damaged: int
    """Rows and bodies that were not what was stored, and were removed."""


class DiskStore:
    """A bounded store of bodies in a directory. Blocking; safe across threads and processes.

    Raises only StoreError: StoreFull and StoreBusy if a call could not be completed, StoreUnavailable if the
    directory became unusable or the store is closed, StoreReadOnly for a change to a read-only directory.
    A damaged entry is removed and counts as a miss.
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
        self._look_at = 0.0
        self._hits = self._misses = self._damaged = 0
        self._contents = self._open_contents()

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

        ``warn`` gets one line for what a user should know of, such as a damaged index that was set aside. It
        may be called from another thread, and must not call the store.
        """
        directory = directory.absolute()
        try:
            return cls(directory, limits or StoreLimits(), clock=clock, warn=warn)
        except StoreUnavailable:
            raise
        except StoreError as error:
            raise StoreUnavailable(error.reason, directory=str(directory)) from error

    @property
    def disk(self) -> Self:
        """The store on disk that a client's store is, or has."""
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop a compaction in the background at its next batch, and let go of the index. Twice is once."""
        with self._lock:
            self._closing.set()
        if self._compactor is not None:
            self._compactor.join()
        self._contents.close()

    def get(self, key: Key) -> StoredEntry | None:
        """The entry, its body verified against its sha256; None for none, or when a writer is in the way."""
        try:
            found = self._attempt(lambda contents: contents.load(key))
        except (StoreBusy, StoreFull, StoreReadOnly):
            found = None
        with self._lock:
            self._hits += found is not None
            self._misses += found is None
        if found is not None and not self.is_read_only:
            age = self._clock() - found.row.accessed_at
            if not 0 <= age < ACCESS_SECONDS:  # a clock that was ahead has left a use in the future
                self._use(found.row)
        return found

    def put(self, key: Key, body: bytes, *, metadata: Metadata, compress: bool = True) -> Digest:
        """Store, replacing what the key had. A body that is here, under any key, is not written again.

        ``compress=False`` for bodies that are compressed. Metadata: a small flat mapping of JSON scalars;
        raises ValueError or TypeError for others.
        """
        self._refuse_read_only()
        if len(body) > self.limits.max_body_bytes:
            raise StoreFull("the body is larger than max_body_bytes", directory=str(self.directory))
        deadline = time.monotonic() + self.limits.room_timeout

        def make_room() -> bool:
            self._compact_in_background()
            time.sleep(ROOM_POLL)
            return time.monotonic() < deadline

        digest = self._attempt(
            lambda contents: contents.insert(
                key, body, metadata=metadata, compress=compress, now=self._clock(), make_room=make_room
            )
        )
        if self._is_compaction_due():
            self._compact_in_background()
        return digest

    def touch(self, key: Key, *, metadata: Metadata) -> bool:
        """Revalidated: touched_at is now, fields replace those of the same name. False for no such entry."""
        self._refuse_read_only()
        return self._attempt(lambda contents: contents.update(key, metadata=metadata, now=self._clock()))

    def delete(self, key: Key) -> bool:
        """Remove the entry, and its body when no other entry has it. False for no such entry."""

        def delete(contents: Contents) -> bool:
            text = key_text(key)
            return contents.drop(lambda: [entry for entry in [contents.index.rows.get(text)] if entry]) > 0

        self._refuse_read_only()
        return self._attempt(delete)

    def rows(self, *prefix: str) -> Iterator[Row]:
        """Entries in the order of their keys: all, those of a server, of a (server, partition), and so on to
        the media type. Bodies are not looked at. What is put meanwhile may be among them or not.
        """
        low, high = key_range(*prefix)

        def page_after(key: str) -> list[RawEntry]:
            return self._attempt(lambda contents: contents.index.rows.page(low, high, after=key))

        page = page_after("")
        while page:
            yield from filter(None, map(unseal_entry, page))
            page = page_after(page[-1].key)

    def compact(
        self, *, max_bytes: int | None = None, max_age: float | None = None, dry_run: bool = False
    ) -> CompactionReport:
        """Down to max_bytes (default: the low mark), without what was not used for max_age seconds.

        One runs at a time, over all processes; a second one reports ``skipped="locked"``.
        """
        from specmux_cache.store.compaction import CompactionReport, Goal

        goal = Goal(
            max_bytes=self.limits.low_bytes if max_bytes is None else max_bytes,
            max_age=self.limits.max_age if max_age is None else max_age,
        )
        self._refuse_read_only()
        with self._translating_errors():
            self._current()
            with hold_lock(self.directory / COMPACTION_LOCK, timeout=0) as got:
                if not got:
                    return CompactionReport(skipped="locked", dry_run=dry_run)
                compact = partial(self._compact_once, goal, dry_run=dry_run)
                try:
                    return compact()
                except StoreDamaged:
                    return compact()  # what is left once the damaged index is set aside

    def _compact_once(self, goal: Goal, *, dry_run: bool) -> CompactionReport:
        """Sets a damaged index aside. Raises StoreDamaged."""
        from specmux_cache.store.compaction import Compaction

        # A connection of its own: threads of this process that read do not wait for its batches.
        contents = self._open_contents()
        try:
            compaction = Compaction(contents, goal, clock=self._clock, stopped=self._closing.is_set)
            if dry_run:
                return compaction.preview()
            contents.index.note(COMPACTED_AT, self._clock())
            return compaction.run()
        except StoreDamaged:
            self._set_aside(contents)
            raise
        finally:
            contents.close()

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
            damaged=self._damaged + self._contents.damaged,
        )

    def check(self, *, fix: bool = False) -> tuple[StoreProblem, ...]:
        """Verify the index and every body. ``fix`` removes what is wrong. Safe beside readers and writers."""
        if fix:
            self._refuse_read_only()
        from specmux_cache.store.checking import verify

        return self._attempt(lambda contents: verify(contents, fix=fix))

    def clear(self) -> int:
        """Remove all entries; how many."""
        self._refuse_read_only()
        removed = 0
        while count := self._attempt(
            lambda contents: contents.drop(lambda: contents.index.rows.page(*key_range(), limit=CLEARED))
        ):
            removed += count
        return removed

    @property
    def is_read_only(self) -> bool:
        """True where the directory cannot be written to: what is there is read, and nothing written down."""
        return self._contents.is_read_only

    def _refuse_read_only(self) -> None:
        if self.is_read_only:
            raise StoreReadOnly("it cannot be written to", directory=str(self.directory))

    def _attempt(self, work: Callable[[Contents], T]) -> T:
        """Do it; once more where something could be done about the failure."""
        try:
            contents = self._current()
            try:
                return work(contents)
            except StoreDamaged:
                self._set_aside(contents)
            except DiskFull:
                # On a small disk it may be the write-ahead log that fills it.
                contents.index.database.checkpoint()
            except StoreUnavailable:
                if contents is self._contents:
                    raise  # else another thread has replaced it
            return work(self._current())
        except OSError as error:
            raise store_error_of(error, self.directory) from error

    @contextlib.contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise store_error_of(error, self.directory) from error

    def _current(self) -> Contents:
        if self._closing.is_set():
            raise StoreUnavailable("closed", directory=str(self.directory))
        contents = self._contents
        if contents.index.database.is_current():
            return contents
        with self._lock:
            if not self._contents.index.database.is_current():
                replaced, self._contents = self._contents, self._open_contents()
                self._damaged += replaced.damaged
                replaced.close()
            return self._contents

    def _open_contents(self) -> Contents:
        with self._translating_errors():
            if is_read_only(self.directory):
                accept_read_only(self.directory)
                return Contents(self.directory, self.limits, is_read_only=True)
            prepare(self.directory)
            with self._exclusively():
                contents = self._contents_of_directory()
                try:
                    contents.adopt()
                    if contents.index.read_note(COMPACTED_AT) is None:
                        contents.index.note(COMPACTED_AT, self._clock())
                except BaseException:
                    contents.close()
                    raise
                fill_reserve(self.directory, self.limits.reserve)
                return contents

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        with hold_lock(self.directory / LOCK, timeout=self.limits.busy_timeout) as got:
            if not got:
                raise StoreBusy("another process is opening it", directory=str(self.directory))
            yield

    def _contents_of_directory(self) -> Contents:
        try:
            return Contents(self.directory, self.limits)
        except StoreDamaged:
            self._rename_aside()
        except DiskFull:
            if not release_reserve(self.directory):
                raise
        return Contents(self.directory, self.limits)

    def _use(self, row: Row) -> None:
        # That it was used is not worth a wait, nor a failure.
        with contextlib.suppress(StoreError):
            self._attempt(lambda contents: contents.use(row, self._clock()))

    def _set_aside(self, contents: Contents) -> None:
        if contents.is_read_only:
            raise StoreUnavailable(
                "its index is damaged, and cannot be set aside", directory=str(self.directory)
            )
        with self._exclusively():
            if contents.index.database.is_current():
                self._rename_aside()

    def _rename_aside(self) -> None:
        self._warn(f"{self.directory}: the index is damaged; set aside, starting empty")
        index = self.directory / INDEX_FILE
        for suffix in ("-wal", "-shm"):
            index.with_name(INDEX_FILE + suffix).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            index.replace(self.directory / DAMAGED_FILE)

    def _is_compaction_due(self) -> bool:
        if self._contents.bytes_seen > self.limits.high_bytes:
            return True
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + DUE_POLL
        last = self._attempt(lambda contents: contents.index.read_note(COMPACTED_AT))
        # A time in the future is of a clock that was ahead.
        return last is None or not 0 <= self._clock() - last < self.limits.compact_interval

    def _compact_in_background(self) -> None:
        with self._lock:
            if self._closing.is_set() or (self._compactor is not None and self._compactor.is_alive()):
                return
            compactor = threading.Thread(
                target=self._compact_quietly, name=f"compact {os.fspath(self.directory)}", daemon=True
            )
            with contextlib.suppress(RuntimeError):  # no more threads: the next write tries again
                compactor.start()
                self._compactor = compactor

    def _compact_quietly(self) -> None:
        try:
            self.compact()
        except StoreError as error:
            if not self._closing.is_set():
                self._warn(f"compaction failed: {cut(str(error))}")

"""Remove entries of a store that is too large or too old, in a fixed order.

1. revisions beyond those kept, 2. entries not used for max_age, 3. down to the bound: superseded revisions,
then the least recently used, 4. leftovers of killed writers, 5. empty directories, 6. free pages and the WAL.
Invariant: readers do not wait, writers wait for one batch.
"""

# Theory of operation
#
# A compaction runs beside readers and writers, of this process and of others. One runs at a time: its
# caller holds the directory's compaction lock. Each batch is a transaction of its own, of BATCH entries,
# and between batches it sleeps PAUSE. SQLite's lock is not fair: without the pause a waiting writer would
# lose every race until the end.
#
# The order is that of usefulness. Revisions beyond ``keep_superseded`` and entries unused for ``max_age``
# go whatever the size. Only while the store is above its goal do superseded revisions go, and then the
# least recently used. The current revision of a document in use is the last to go.
#
# Each batch is chosen within its transaction: an entry that was used or replaced a moment ago is judged as
# it is now. The goal is compared with ``bytes_needed``, which leaves out pages and log that are returned at
# the end; compared with ``bytes_used``, a compaction would remove entries for space that is free already.
#
# Clocks lie. Uses in the future are set to now at the beginning, and the clock is read again for each
# batch, so a clock that is set back does not make new entries old. Leftovers are judged by the file
# system's clock, for another machine may have written them; ten minutes are longer than any put takes.
#
# What must never happen: a file removed that a row names, or that a living writer is about to name; a run
# without an end (it stops after as many entries as there were at its start); a compaction that fails
# because the disk is full (see ``Contents.drop``).

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from specmux_cache.store.contents import Contents
from specmux_cache.store.directory import DAMAGED_FILE, fill_reserve
from specmux_cache.store.index import Index, RowStanding, Victim
from specmux_converters.lazy.dataclasses import dataclass

BATCH: Final = 50
"""Entries per transaction: with their bodies, at most 100 rows."""
PREVIEWED: Final = 10_000
"""Entries read at a time for a preview: each read passes over the previous ones."""
PAUSE: Final = 0.002
"""Seconds between two batches: a waiting writer tries for the lock several times meanwhile."""
LEFTOVER_SECONDS: Final = 600.0
"""A temporary file or incomplete body older than this has no writer any more."""
DAMAGED_SECONDS: Final = 86400.0
SHRINK_PAGES: Final = 64

Reason = Literal["obsolete", "aged", "superseded", "unused"]


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a compaction."""

    max_bytes: int
    """Allocated bytes to reach."""
    max_age: float
    """Entries not used for this many seconds are removed regardless of size."""


@dataclass(frozen=True, slots=True)
class CompactionPhase:
    """Entries to remove for one reason: the first ones, how many and from an offset, in order of removal."""

    reason: Reason
    first: Callable[[int, int], list[Victim]]
    is_bounded: bool
    """Whether it stops once the store is below the goal."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The result of a compaction, or with ``dry_run`` its expected result."""

    skipped: Literal["", "locked"] = ""
    dry_run: bool = False
    bytes_before: int = 0
    bytes_after: int = 0
    obsolete: int = 0
    """Entries beyond the revisions that are kept."""
    aged: int = 0
    superseded: int = 0
    """Superseded revisions removed to reach the bound."""
    unused: int = 0
    """Least recently used entries removed to reach the bound."""
    leftovers: int = 0
    """Files left by killed writers."""
    is_complete: bool = True
    """False if it was interrupted."""

    @property
    def entries(self) -> int:
        return self.obsolete + self.aged + self.superseded + self.unused


def phases(index: Index, max_age: float, *, clock: Callable[[], float]) -> tuple[CompactionPhase, ...]:
    """The phases, in order."""

    def standing(standing: RowStanding) -> Callable[[int, int], list[Victim]]:
        return lambda limit, offset: index.by_standing(standing, limit=limit, offset=offset)

    def unused(age: float) -> Callable[[int, int], list[Victim]]:
        # The clock is read for each batch, under the lock: if it is set back meanwhile, entries stored then
        # do not count as old.
        return lambda limit, offset: index.least_recently_used(
            before=clock() - age, limit=limit, offset=offset
        )

    return (
        CompactionPhase("obsolete", standing(RowStanding.OBSOLETE), is_bounded=False),
        CompactionPhase("aged", unused(max_age), is_bounded=False),
        CompactionPhase("superseded", standing(RowStanding.SUPERSEDED), is_bounded=True),
        CompactionPhase("unused", unused(-math.inf), is_bounded=True),
    )


class Compaction:
    """One run over a store; the caller holds its compaction lock. Raises StoreError."""

    def __init__(
        self, contents: Contents, goal: Goal, *, clock: Callable[[], float], stopped: Callable[[], bool]
    ) -> None:
        self._contents = contents
        self._goal = goal
        self._clock = clock
        self._phases = phases(contents.index, goal.max_age, clock=clock)
        self._stopped = stopped

    def run(self) -> CompactionReport:
        contents, removed = self._contents, Counter[Reason]()
        contents.index.correct_sum()
        before = contents.bytes_used()
        self._drop_damaged_index()
        contents.index.clamp_access(now=self._clock())
        # A concurrent writer can add entries as fast as they are removed: stop at the initial number.
        most, _, _ = contents.index.counts()
        for phase in self._phases:
            while not self._stopped() and removed.total() < most:
                count = contents.drop(partial(self._next_of, phase))
                if not count:
                    break
                removed[phase.reason] += count
                time.sleep(PAUSE)
        leftovers = 0 if self._stopped() else self._sweep()
        contents.remove_empty_directories()
        self._reclaim()
        fill_reserve(contents.directory, contents.limits.reserve)
        return self._report(removed, before, contents.bytes_used(), leftovers=leftovers)

    def preview(self) -> CompactionReport:
        """The entries that ``run`` would remove, by the sizes in the index; without leftovers."""
        index, removed = self._contents.index, Counter[Reason]()
        before = self._contents.bytes_used()
        excess = self._contents.bytes_needed() - self._goal.max_bytes
        freed, gone, named, references = 0, set[int](), Counter[str](), dict[str, int]()
        for phase in self._phases:
            offset = 0
            while not (phase.is_bounded and freed >= excess) and (batch := phase.first(PREVIEWED, offset)):
                offset += len(batch)
                fresh = {entry.digest for entry in batch if not entry.is_inline} - references.keys()
                references |= index.references([*fresh])
                for entry in batch:
                    if entry.rowid not in gone and not (phase.is_bounded and freed >= excess):
                        gone.add(entry.rowid)
                        removed[phase.reason] += 1
                        named[entry.digest] += 1
                        freed += entry.row_bytes
                        if not entry.is_inline and named[entry.digest] == references[entry.digest]:
                            freed += entry.allocated
        return replace(self._report(removed, before, before - freed, leftovers=0), dry_run=True)

    def _next_of(self, phase: CompactionPhase) -> list[Victim]:
        """The next batch of this phase; of a bounded one, no more than needed."""
        batch = phase.first(BATCH, 0)
        if not phase.is_bounded:
            return batch
        # Assumes that free pages and the WAL are released at the end.
        excess = self._contents.bytes_needed() - self._goal.max_bytes
        chosen = []
        for entry in batch:
            if excess <= 0:
                break
            chosen.append(entry)
            excess -= entry.row_bytes + entry.allocated
        return chosen

    def _sweep(self) -> int:
        """Remove leftovers of killed writers, and files unknown to the index."""
        contents, removed = self._contents, 0
        suspects = [
            body.digest for body in contents.index.pending(limit=-1) if self._is_left(body.pending_since)
        ]
        # Ages of files follow the file system's clock, not the store's.
        leftovers = [
            file
            for file in contents.bodies.files()
            if abs(time.time() - file.modified_at) >= LEFTOVER_SECONDS
        ]
        for file in leftovers:
            if file.digest is None:
                contents.bodies.remove_file(file)
                removed += 1
        suspects += contents.index.unknown([file.digest for file in leftovers if file.digest is not None])
        for start in range(0, len(suspects), BATCH):
            if self._stopped():
                break
            removed += contents.sweep(suspects[start : start + BATCH], begun_before=math.inf)
            time.sleep(PAUSE)
        return removed

    def _drop_damaged_index(self) -> None:
        """A damaged index is kept for a day for diagnosis, unless there is no room."""
        path = self._contents.directory / DAMAGED_FILE
        with contextlib.suppress(FileNotFoundError):
            is_old = time.time() - path.lstat().st_ctime >= DAMAGED_SECONDS
            if is_old or self._contents.bytes_needed() > self._goal.max_bytes:
                path.unlink()

    def _is_left(self, begun: float) -> bool:
        # A time in the future stems from a clock that was ahead.
        return abs(self._clock() - begun) >= LEFTOVER_SECONDS

    def _reclaim(self) -> None:
        database = self._contents.index.database
        while not self._stopped() and database.shrink(SHRINK_PAGES):
            time.sleep(PAUSE)
        database.checkpoint()

    def _report(
        self, removed: Counter[Reason], before: int, after: int, *, leftovers: int
    ) -> CompactionReport:
        return CompactionReport(
            bytes_before=before,
            bytes_after=after,
            obsolete=removed["obsolete"],
            aged=removed["aged"],
            superseded=removed["superseded"],
            unused=removed["unused"],
            leftovers=leftovers,
            is_complete=not self._stopped(),
        )

"""What goes when the store is too large or too old, and in which order.

1. revisions beyond those kept, 2. what was not used for max_age, 3. down to the bound: superseded revisions, then
the least recently used, 4. leftovers of killed writers, 5. empty directories, 6. free pages and the WAL.
In batches with a pause between them: readers never wait, writers wait for one batch.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from .bodies import is_digest
from .index import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .contents import Contents
    from .index import RawEntry

BATCH: Final = 100
"""Rows in one transaction, at most."""
PAUSE: Final = 0.001
"""Seconds between two batches: as long as a writer waits before it tries for the lock again."""
LEFTOVER_SECONDS: Final = 600.0
"""A temporary file or unfinished body older than this has no writer any more."""
SHRINK_PAGES: Final = 256

Reason = Literal["obsolete", "aged", "superseded", "unused"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a compaction is to reach."""

    max_bytes: int
    """Allocated bytes to get down to."""
    unused_since: float
    """Entries last used before this go whatever the size."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction did, or with ``dry_run`` would do."""

    skipped: Literal["", "locked"] = ""
    dry_run: bool = False
    bytes_before: int = 0
    bytes_after: int = 0
    obsolete: int = 0
    """Entries beyond the revisions that are kept."""
    aged: int = 0
    superseded: int = 0
    """Kept revisions that the bound left no room for."""
    unused: int = 0
    """Least recently used entries that the bound left no room for."""
    leftovers: int = 0
    """Unfinished and unknown body files, temporary files."""
    directories: int = 0
    complete: bool = True
    """False when it was stopped before the goal."""

    @property
    def entries(self) -> int:
        return self.obsolete + self.aged + self.superseded + self.unused


class Compaction:
    """One run over a store whose compaction lock the caller holds."""

    def __init__(self, contents: Contents, goal: Goal, *, now: float, stopped: Callable[[], bool]) -> None:
        self._contents = contents
        self._goal = goal
        self._now = now
        self._stopped = stopped
        self._removed: dict[Reason, int] = {"obsolete": 0, "aged": 0, "superseded": 0, "unused": 0}

    def run(self) -> CompactionReport:
        before = self._contents.bytes_used()
        with self._contents.index.transaction():
            self._contents.index.clamp_access(now=self._now)
        for reason, batch in self._victims():
            self._contents.drop(batch)
            self._removed[reason] += len(batch)
            time.sleep(PAUSE)
        leftovers = self._sweep()
        directories = self._contents.bodies.remove_empty_directories()
        self._reclaim()
        return CompactionReport(
            bytes_before=before,
            bytes_after=self._contents.bytes_used(),
            leftovers=leftovers,
            directories=directories,
            complete=not self._stopped(),
            **self._removed,
        )

    def _victims(self) -> Iterator[tuple[Reason, list[RawEntry]]]:
        """Batches to remove; each is looked up after the one before it is gone."""
        index = self._contents.index
        while not self._stopped() and (batch := index.by_standing(Standing.OBSOLETE, limit=BATCH)):
            yield "obsolete", batch
        while not self._stopped() and (
            batch := index.least_recently_used(before=self._goal.unused_since, limit=BATCH)
        ):
            yield "aged", batch
        while (
            not self._stopped()
            and self._is_above()
            and (batch := index.by_standing(Standing.SUPERSEDED, limit=BATCH))
        ):
            yield "superseded", batch
        while (
            not self._stopped()
            and self._is_above()
            and (batch := index.least_recently_used(before=math.inf, limit=BATCH))
        ):
            yield "unused", batch

    def _is_above(self) -> bool:
        """Above the goal, once the free pages and the WAL will have been given back."""
        return self._contents.bytes_needed() > self._goal.max_bytes

    def _sweep(self) -> int:
        """Remove what killed writers left."""
        contents, before = self._contents, time.time() - LEFTOVER_SECONDS
        removed = 0
        suspects: list[str] = []
        for file in contents.bodies.files():
            if self._stopped():
                return removed
            if file.modified_at > before:
                continue
            if file.digest is None:
                file.path.unlink(missing_ok=True)
                removed += 1
            elif contents.index.body(file.digest) is None:
                suspects.append(file.digest)
        suspects += [digest for digest, _ in contents.index.pending(limit=10_000)]
        for start in range(0, len(suspects), BATCH):
            batch = [digest for digest in suspects[start : start + BATCH] if is_digest(digest)]
            removed += contents.sweep(batch, older_than=self._now - LEFTOVER_SECONDS)
        return removed

    def _reclaim(self) -> None:
        index = self._contents.index
        while not self._stopped() and index.shrink(SHRINK_PAGES):
            time.sleep(PAUSE)
        index.checkpoint()

"""Index and body files, kept in step.

A body is in the index, as pending, before its file exists: whatever a killed writer leaves is counted and found.
A file appears and disappears only under the index's write lock: no one removes what another is about to name.
Every write of more than a few rows is cut into batches by the caller.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from .bodies import Bodies, allocated, digest_of, is_digest, pack, unpack
from .errors import StoreError, StoreFull, cut
from .index import Index, RawEntry
from .rows import Digest, Row, Stored, key_range, key_text, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .keys import Key
    from .limits import StoreLimits
    from .rows import Metadata

ACCESS_SECONDS = 60.0
"""A use is written down at most this often."""
TOP_LEVEL = ("cache.db", "cache.db-wal", "cache.db-shm", "damaged.db", "reserve", "CACHEDIR.TAG", "version")


class Contents:
    """What lies in one directory that ``directory.prepare`` has accepted. Raises StoreError."""

    def __init__(self, directory: Path, limits: StoreLimits) -> None:
        self.directory = directory
        self.limits = limits
        self.index = Index(directory, busy_timeout=limits.busy_timeout)
        self.bodies = Bodies(directory)

    def close(self) -> None:
        self.index.close()

    def row(self, key: Key) -> Row | None:
        """What the index says, without a look at the body. A row that does not unseal is removed."""
        raw = self.index.entry(key_text(key))
        return None if raw is None else self.opened(raw)

    def opened(self, raw: RawEntry) -> Row | None:
        row = unsealed(raw)
        if row is None:
            self.drop([raw])
        return row

    def load(self, key: Key) -> Stored | None:
        """The entry with its verified body. What is damaged is removed, and is a miss."""
        row = self.row(key)
        if row is None:
            return None
        try:
            # Packing never makes a body longer, see ``pack``.
            data = self.bodies.read(row.digest, max_bytes=min(row.size, self.limits.max_body_bytes))
            return Stored(row, unpack(data, row.encoding, size=row.size, digest=row.digest))
        except (OSError, ValueError):
            self.discard(row.digest)
            return None

    def insert(
        self, key: Key, body: bytes, *, metadata: Metadata, compress: bool, now: float
    ) -> Digest | None:
        """Store; None when there is no room below the bound. Raises StoreFull for a full disk, OSError never."""
        digest = digest_of(body)
        row = Row(key, digest, len(body), "identity", now, now, now, metadata)
        linked = self._link(row, now)
        if linked is not False:
            return digest if linked else None
        encoding, data = pack(body, compress=compress)
        row = replace(row, encoding=encoding)
        if not self._announce(row, allocated(len(data)), now):
            return None
        try:
            self._settle(row, data, now)
        except OSError as error:
            self._withdraw(digest)
            raise StoreFull(cut(error.strerror or str(error)), directory=str(self.directory)) from error
        except StoreFull:
            self._withdraw(digest)
            raise
        return digest

    def update(self, key: Key, *, metadata: Metadata, now: float) -> bool:
        """New times, and the named fields of the metadata; False when the entry is not there."""
        with self.index.transaction():
            row = self.row(key)
            if row is None:
                return False
            self._name(replace(row, touched_at=now, metadata={**row.metadata, **metadata}), now)
        return True

    def use(self, row: Row, now: float) -> None:
        """Write down that the entry was used, unless that was done lately or a writer is at it."""
        if 0 <= now - row.accessed_at < ACCESS_SECONDS:
            return
        with self.index.transaction(wait=False):
            self.index.write_access(key_text(row.key), now=now)
            self._rank(row.key, now)

    def drop(self, entries: Iterable[RawEntry]) -> int:
        """Remove entries, and the bodies that no other entry names; allocated bytes freed."""
        chosen = list(entries)
        with self.index.transaction():
            self.index.delete_rows(entry.rowid for entry in chosen)
            return self._remove_bodies(
                self.index.unreferenced(entry.digest for entry in chosen if entry.digest)
            )

    def discard(self, digest: Digest) -> None:
        """Remove a damaged body and every entry that names it."""
        with self.index.transaction():
            self.index.delete_rows(entry.rowid for entry in self.index.entries_of(digest))
            self._remove_bodies([digest])

    def bytes_used(self) -> int:
        """Allocated bytes of everything in the directory, without looking at every body."""
        return self.index.body_bytes() + self.bodies.overhead() + self._top_level()

    def bytes_needed(self) -> int:
        """``bytes_used`` once free pages and the WAL have been given back."""
        return self.bytes_used() - self.index.free_bytes() - self.index.wal_bytes()

    def sweep(self, digests: Iterable[str], *, older_than: float) -> int:
        """Remove bodies that were begun and never finished, or lie here unknown to the index; how many."""
        removed = 0
        with self.index.transaction():
            for digest in self.index.unreferenced(digests):
                known = self.index.body(Digest(digest))
                if known is None or known.pending_since < older_than:
                    self._remove_bodies([digest])
                    removed += 1
        return removed

    def _top_level(self) -> int:
        total = 0
        for path in (self.directory, *(self.directory / name for name in TOP_LEVEL)):
            with contextlib.suppress(FileNotFoundError):
                total += path.lstat().st_blocks * 512
        return total

    def _link(self, row: Row, now: float) -> bool | None:
        """Name a body that is here already: False when it is not, None when there is no room for one more entry."""
        known = self.index.body(row.digest)
        if known is None or known.is_pending:
            return False
        with self.index.transaction():
            known = self.index.body(row.digest)
            if known is None or known.is_pending or not self.bodies.has(row.digest):
                return False
            if not self._has_room():
                return None
            self._name(replace(row, encoding=known.encoding), now)
        return True

    def _announce(self, row: Row, size: int, now: float) -> bool:
        with self.index.transaction():
            if not self._has_room():
                return False
            self.index.write_body(row.digest, encoding=row.encoding, allocated=size, pending=True, now=now)
        return True

    def _settle(self, row: Row, data: bytes, now: float) -> None:
        temporary = self.bodies.write(data)
        try:
            with self.index.transaction():
                self.bodies.publish(temporary, row.digest)
                self.index.write_body(
                    row.digest, encoding=row.encoding, allocated=allocated(len(data)), pending=False, now=now
                )
                self._name(row, now)
        finally:
            temporary.unlink(missing_ok=True)

    def _withdraw(self, digest: Digest) -> None:
        """A body that could not be written is not announced any more. Best effort: a sweep finds it otherwise."""
        with contextlib.suppress(StoreError), self.index.transaction():
            known = self.index.body(digest)
            if known is not None and known.is_pending and self.index.unreferenced([digest]):
                self._remove_bodies([digest])

    def _name(self, row: Row, now: float) -> None:
        text = key_text(row.key)
        before = self.index.entry(text)
        self.index.write_entry(text, seal(row), digest=row.digest, now=now)
        if before is not None and before.digest != row.digest:
            self._remove_bodies(self.index.unreferenced([before.digest]))
        self._rank(row.key, now)

    def _rank(self, key: Key, now: float) -> None:
        low, high = key_range(key.server, key.partition, key.group_version, key.media_type)
        self.index.rank(low, high, current=key_text(key), now=now, keep=self.limits.keep_superseded)

    def _remove_bodies(self, digests: Iterable[str]) -> int:
        # Files first: on a full disk that is what makes room for the transaction to be written.
        freed = 0
        for digest in digests:
            if is_digest(digest):
                self.bodies.remove(Digest(digest))
            freed += self.index.delete_body(digest)
        return freed

    def _has_room(self) -> bool:
        return self.bytes_used() <= self.limits.high_bytes


def unsealed(raw: RawEntry) -> Row | None:
    """The row, or None for one that nobody sealed for this key and digest."""
    if not (raw.sound and is_digest(raw.digest)):
        return None
    try:
        return unseal(
            raw.value,
            key=raw.key,
            digest=raw.digest,
            accessed_at=raw.accessed_at,
            superseded=raw.standing is not None,
        )
    except (ValueError, TypeError):
        return None

"""Index and body files, kept consistent.

A small body is stored in its entry's row. Any other is recorded in the index as pending before its file
exists, so leftovers of a killed writer are counted and found. Files appear and disappear only under the
index's write lock, and removals are checked under the same lock, so nothing that was just named is removed.
"""

from __future__ import annotations

import contextlib
import errno
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from specmux_cache.errors import DiskFull, StoreError, StoreFull, StoreUnavailable
from specmux_cache.store.bodies import (
    Bodies,
    allocated_at,
    allocated_bytes,
    digest_of,
    pack,
    unpack,
)
from specmux_cache.store.directory import release_reserve
from specmux_cache.store.index import Index, Victim
from specmux_cache.store.keys import Key
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.rows import (
    Digest,
    Metadata,
    RawEntry,
    Row,
    StoredEntry,
    is_digest,
    key_range,
    key_text,
    seal,
    unseal_entry,
)
from specmux_converters.errors import cut

ACCESS_SECONDS: Final = 60.0
"""A use is recorded at most this often."""
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_BODY: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO)
"""The body is absent, or its place is taken by something else. Other errors say nothing about the body."""
ADOPTED: Final = "adopted"
INLINE_BYTES: Final = 4096
"""Bodies up to this size are stored in the row: a file takes several times as long, and at least one
block."""
LOOK_SECONDS: Final = 0.5
"""Most seconds for which the sum of folders and temporary files is reused when counting small bodies."""
GROWING: Final = 2
"""Entries of TOP_LEVEL that grow with small bodies."""
TOP_LEVEL: Final = (
    "cache.db",
    "cache.db-wal",
    "",
    "cache.db-shm",
    "damaged.db",
    "reserve",
    "CACHEDIR.TAG",
    "version",
)

NoRoom: TypeAlias = None
"""Result of an attempt that may succeed once there is room."""


class Contents:
    """The content of a directory accepted by ``directory.prepare``. Raises only StoreError."""

    def __init__(self, directory: Path, limits: StoreLimits, *, is_read_only: bool = False) -> None:
        self.directory = directory
        self.limits = limits
        self.index = Index(directory, busy_timeout=limits.busy_timeout, is_read_only=is_read_only)
        self.is_read_only = is_read_only
        self._beside = 0
        self._looked_at = -math.inf
        self.bodies = Bodies(directory)
        self.damaged = 0
        """Rows and bodies that differ from what was stored."""
        self.bytes_seen = 0
        """``bytes_used`` after the last insert."""
        self._files = tuple(f"{directory}/{name}" for name in TOP_LEVEL)

    def close(self) -> None:
        self.index.database.retire()

    def load(self, key: Key) -> StoredEntry | None:
        """The entry with its verified body. A damaged one is removed and counts as absent."""
        raw = self.index.rows.get(key_text(key))
        if raw is None:
            return None
        row = unseal_entry(raw, key)
        if row is None:
            self.drop_unsound(raw.key)
            return None
        body = self._body(row, raw.data, packed=raw.packed)
        if body is None:
            body = self._body_or_discard(row)
        return None if body is None else StoredEntry(row, body)

    def fault_of(self, key: str, *, remove: bool) -> Literal["row", "body"] | None:
        """The fault of this entry, checked under the lock; with ``remove`` it is removed."""
        with self.index.database.transaction():
            raw = self.index.rows.get(key)
            row = unseal_entry(raw) if raw is not None else None
            if raw is None or (row is not None and self._body(row, raw.data) is not None):
                return None
            if remove and row is None:
                self.drop_unsound(key)
            elif remove and row is not None:
                self._body_or_discard(row)
        return "row" if row is None else "body"

    def is_whole(self, raw: RawEntry) -> bool:
        """Whether the entry unseals and its body verifies."""
        row = unseal_entry(raw)
        return row is not None and self._body(row, raw.data) is not None

    def insert(
        self,
        key: Key,
        body: bytes,
        *,
        metadata: Metadata,
        compress: bool,
        now: float,
        make_room: Callable[[], bool],
    ) -> Digest:
        """Store. ``make_room`` is called without a lock while there is no room; False gives up."""
        is_small = len(body) <= INLINE_BYTES
        row = Row(key, digest_of(body), len(body), "identity", now, now, now, metadata)
        sealed = seal(row)
        if len(sealed) > self.limits.max_metadata_bytes:
            raise ValueError("metadata is larger than max_metadata_bytes")
        if is_small:
            self._retry_for_room(lambda: self._write_inline(row, sealed, body), make_room)
            return row.digest
        if self._retry_for_room(lambda: self._link(row), make_room):
            return row.digest
        encoding, data = pack(body, compress=compress)
        row = replace(row, encoding=encoding)
        if allocated_bytes(len(data)) > self.limits.high_bytes:
            raise StoreFull("the body is larger than high_bytes", directory=str(self.directory))
        self._retry_for_room(lambda: self._announce(row, allocated_bytes(len(data))), make_room)
        try:
            self._settle(row, data)
        except BaseException as error:
            self._withdraw(row.digest)
            if isinstance(error, OSError):
                raise store_error_of(error, self.directory) from error
            raise
        return row.digest

    def update(self, key: Key, *, metadata: Metadata, now: float) -> bool:
        """Update times and the named metadata fields; False if there is no entry."""
        with self.index.database.transaction():
            raw = self.index.rows.get(key_text(key))
            row = unseal_entry(raw, key) if raw is not None else None
            if raw is None or row is None:
                if raw is not None:
                    self.drop_unsound(raw.key)
                return False
            row = replace(row, touched_at=now, accessed_at=now, metadata={**row.metadata, **metadata})
            self._name(row, seal(row), raw.data)
        return True

    def use(self, row: Row, now: float) -> None:
        """Record that the entry was used. Does not wait for a writer."""
        with self.index.database.transaction(wait=False):
            self.index.write_access(key_text(row.key), now=now)
            self._rank(row.key)

    def drop(self, choose: Callable[[], Sequence[RawEntry | Victim]]) -> int:
        """Remove the chosen entries, and bodies that no other entry names; returns the number of entries.

        Works on a full disk: files are removed before rows, and the reserve is released for the write-ahead
        log.
        """
        try:
            return self._drop(choose)
        except DiskFull:
            release_reserve(self.directory)
            with contextlib.suppress(DiskFull):
                self.index.database.checkpoint()
            return self._drop(choose)

    def drop_unsound(self, key: str) -> None:
        """Remove the row of this key unless it unseals."""

        def choose() -> list[RawEntry]:
            raw = self.index.rows.get(key)
            return [raw] if raw is not None and unseal_entry(raw) is None else []

        self.damaged += self.drop(choose)

    def prune(self, digests: Iterable[str]) -> None:
        """Remove those of these bodies that no entry names."""
        with self.index.database.transaction():
            self._remove_unreferenced(digests)

    def sweep(self, digests: Iterable[str], *, begun_before: float) -> int:
        """Remove bodies begun before then and never completed, and those unknown to the index; returns their
        number."""
        removed = 0
        with self.index.database.transaction():
            for digest in digests:
                known = self.index.body(digest)
                if known is None or known.pending_since < begun_before:
                    removed += self._remove_unreferenced([digest])
        return removed

    def remove_empty_directories(self) -> None:
        with self.index.database.transaction():
            self.bodies.remove_empty_directories()

    def adopt(self) -> None:
        """Record the files of a lost index as incomplete, so that they count and the next sweep finds
        them."""
        if self.index.read_note(ADOPTED) is not None:
            return
        with self.index.database.transaction():
            for file in self.bodies.files():
                if file.digest is not None and self.index.body(file.digest) is None:
                    self.index.write_body(
                        file.digest, encoding="identity", allocated=file.allocated, pending=True, now=0.0
                    )
            self.index.note(ADOPTED, 1.0)

    def bytes_used(self) -> int:
        """Allocated bytes of the whole directory, without examining every body."""
        return self.index.body_bytes() + self.bodies.overhead() + sum(map(allocated_at, self._files))

    def bytes_needed(self) -> int:
        """``bytes_used`` after releasing free pages and the write-ahead log."""
        return self.bytes_used() - self.index.database.free_bytes() - self.index.database.wal_bytes()

    def _drop(self, choose: Callable[[], Sequence[RawEntry | Victim]]) -> int:
        with self.index.database.transaction():
            chosen = choose()
            self.index.delete_rows(entry.rowid for entry in chosen)
            self._remove_unreferenced(entry.digest for entry in chosen if not entry.is_inline)
        return len(chosen)

    def _body(self, row: Row, data: bytes | None = None, *, packed: str | None = None) -> bytes | None:
        """None if it is missing or damaged. Raises StoreUnavailable if that cannot be determined.

        ``data``: the stored bytes, if they are not in a file.
        """
        try:
            if data is None:
                data = self.bodies.read(row.digest, max_bytes=min(row.size, self.limits.max_body_bytes))
            return unpack(data, row.encoding, size=row.size, digest=row.digest, packed=packed)
        except ValueError:
            return None
        except OSError as error:
            if error.errno in NO_BODY:
                return None
            raise store_error_of(error, self.directory) from error

    def _body_or_discard(self, row: Row) -> bytes | None:
        with self.index.database.transaction():
            # It may have been stored again meanwhile.
            raw = self.index.rows.get(key_text(row.key))
            body = self._body(row, None if raw is None else raw.data)
            if body is None:
                self.damaged += 1
                if raw is not None and raw.is_inline:
                    self.index.delete_rows([raw.rowid])
                else:
                    self.index.delete_rows(entry.rowid for entry in self.index.rows.of_body(row.digest))
                    self._remove_unreferenced([row.digest])
        return body

    def _retry_for_room(self, attempt: Callable[[], bool | NoRoom], make_room: Callable[[], bool]) -> bool:
        while (done := attempt()) is None:
            if not make_room():
                raise StoreFull("no room below high_bytes", directory=str(self.directory))
        return done

    def _link(self, row: Row) -> bool | NoRoom:
        """Refer to an existing body; False if there is none."""
        known = self.index.body(row.digest)
        if known is None or known.is_pending:
            return False
        with self.index.database.transaction():
            known = self.index.body(row.digest)
            if known is None or known.is_pending:
                return False
            present = replace(row, encoding=known.encoding)
            # The file may be damaged; reusing it unchecked would store an unreadable entry.
            if self._body(present, packed=known.packed) is None:
                return False
            if not self._has_room(0):
                return None
            self._name(present, seal(present))
        return True

    def _has_room(self, size: int) -> bool:
        used = self.bytes_used()
        self.bytes_seen = used + size
        return used <= self.limits.high_bytes

    def _write_inline(self, row: Row, sealed: str, data: bytes) -> bool | NoRoom:
        now = time.monotonic()
        with self.index.database.transaction():
            growing = self.index.body_bytes() + sum(map(allocated_at, self._files[:GROWING]))
            if now - self._looked_at >= LOOK_SECONDS:
                self._beside = self.bytes_used() - growing
                self._looked_at = now
            self.bytes_seen = growing + self._beside
            if self.bytes_seen > self.limits.high_bytes:
                self._looked_at = -math.inf
                return None
            self._name(row, sealed, data)
        return True

    def _announce(self, row: Row, size: int) -> bool | NoRoom:
        with self.index.database.transaction():
            if not self._has_room(size):
                return None
            self.index.write_body(
                row.digest, encoding=row.encoding, allocated=size, pending=True, now=row.stored_at
            )
        return True

    def _settle(self, row: Row, data: bytes) -> None:
        temporary = self.bodies.write(data)
        try:
            with self.index.database.transaction():
                self.bodies.publish(temporary, row.digest)
                self.index.write_body(
                    row.digest,
                    encoding=row.encoding,
                    allocated=allocated_bytes(len(data)),
                    pending=False,
                    now=row.stored_at,
                    packed=digest_of(data),
                )
                self._name(row, seal(row))
        finally:
            temporary.unlink(missing_ok=True)

    def _withdraw(self, digest: Digest) -> None:
        """Withdraw a body that could not be written. If this fails, a sweep finds it."""
        with contextlib.suppress(StoreError):
            self.sweep([digest], begun_before=float("inf"))

    def _name(self, row: Row, sealed: str, data: bytes | None = None) -> None:
        """Write the entry, with its body if that is small, and remove its previous body."""
        text = key_text(row.key)
        before = self.index.named_file(text)
        self.index.write_entry(text, sealed, digest=row.digest, data=data, now=row.accessed_at)
        if before is not None and (before != row.digest or data is not None):
            self._remove_unreferenced([before])
        self._rank(row.key)

    def _rank(self, key: Key) -> None:
        low, high = key_range(key.server, key.partition, key.group_version, key.media_type)
        self.index.rank(low, high, current=key_text(key), keep=self.limits.keep_superseded)

    def _remove_unreferenced(self, digests: Iterable[str]) -> int:
        # Files first: on a full disk that makes room for the transaction.
        gone = self.index.list_unreferenced(digests)
        for digest in gone:
            if is_digest(digest):
                with contextlib.suppress(OSError):
                    self.bodies.remove(Digest(digest))
        self.index.delete_bodies(gone)
        return len(gone)


def store_error_of(error: OSError, directory: Path) -> StoreError:
    """The store's error for a failed system call."""
    kind = DiskFull if error.errno in NO_SPACE else StoreUnavailable
    return kind(cut(error.strerror or str(error)), directory=str(directory))

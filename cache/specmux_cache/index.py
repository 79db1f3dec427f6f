"""The index: a diskcache database, with the statements that diskcache has none for.

Two kinds of rows. An entry: key ``[server, partition, group_version, media_type, hash]``, tag = digest, value =
sealed text. A body: key ``body <digest>``, size = allocated bytes, value = encoding. diskcache's triggers keep
the sum of the sizes, in the same transaction as the row. ``expire_time``, which diskcache indexes, says what may
go first, see ``Standing``.
Invariant: sqlite3's and diskcache's errors do not leave this module.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, get_args

import diskcache

from .disk import PlainDisk
from .errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreUnavailable, cut
from .rows import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from .rows import Digest

NAME: Final = diskcache.core.DBNAME
SCHEMA_VERSION: Final = 1
SETTINGS: Final[dict[str, object]] = {
    "cull_limit": 0,  # diskcache evicts nothing by itself: compaction is ours
    "eviction_policy": "least-recently-used",  # for its index on access_time
    "statistics": 0,
    "tag_index": 1,
    "sqlite_auto_vacuum": 2,  # INCREMENTAL: the file shrinks when compaction says so
    "sqlite_mmap_size": 0,  # a truncated file under a map is SIGBUS
}
PRAGMAS: Final = (
    "cache_size = -8192",
    "journal_size_limit = 0",
    "mmap_size = 0",
    "synchronous = NORMAL",
    "trusted_schema = OFF",
    "wal_autocheckpoint = 256",
)
RETRY_SECONDS: Final = 0.001
"""Between two tries for the write lock. SQLite's own back-off sleeps up to 100 ms."""
PLAIN: Final = "typeof(key) = 'text' AND raw = 1 AND mode = 1 AND filename IS NULL AND typeof(value) = 'text'"
ENTRY_COLUMNS: Final = f"rowid, key, tag, value, access_time, expire_time, ({PLAIN} AND typeof(tag) = 'text')"


class Standing(float, Enum):
    """How readily an entry goes; diskcache's expire_time, NULL for the current revision."""

    OBSOLETE = 1.0
    """Superseded, and more revisions were used since than are kept."""
    SUPERSEDED = 2.0
    PENDING = 3.0
    """A body that is being written; no entry refers to it yet."""


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry as read, not yet unsealed. ``sound`` is False when a column is not of its type."""

    rowid: int
    key: str
    digest: str
    value: str
    accessed_at: float
    standing: float | None
    sound: bool


@dataclass(frozen=True, slots=True)
class KnownBody:
    """What the index says about a body."""

    encoding: Encoding
    allocated: int
    pending_since: float
    """inf for a body that was written whole."""

    @property
    def is_pending(self) -> bool:
        return self.pending_since != math.inf


class Index(diskcache.Cache):  # type: ignore[misc]  # diskcache is untyped
    """One connection per process, used by one thread at a time.

    diskcache keeps one per thread and can close only the calling thread's; worker threads would leak theirs.
    """

    def __init__(self, directory: Path, *, busy_timeout: float) -> None:
        self._path = directory / NAME
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._abandoned: list[sqlite3.Connection] = []
        self._owner = os.getpid()
        self._busy_timeout = busy_timeout
        with self._translated():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            self._refuse_newer()
            super().__init__(str(directory), disk=PlainDisk, **SETTINGS)
            self._identity = self._on_disk()

    @property
    def _con(self) -> sqlite3.Connection:
        """What diskcache executes on. A connection inherited through fork is left alone, as SQLite asks."""
        if self._owner != os.getpid():
            if self._connection is not None:
                self._abandoned.append(self._connection)
            self._connection, self._lock, self._owner = None, threading.RLock(), os.getpid()
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
            for pragma in PRAGMAS:
                self._connection.execute(f"PRAGMA {pragma}")
        return self._connection

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._owner == os.getpid():
                connection.close()

    def is_current(self) -> bool:
        """False when another process has set this database aside."""
        return self._identity == self._on_disk()

    @contextmanager
    def transaction(self, *, wait: bool = True) -> Iterator[None]:
        """Holds the write lock of all processes; nests. Raises StoreBusy when it is not to be had."""
        with self._translated(), self._exclusive():
            if self._con.in_transaction:
                yield
                return
            self._run("BEGIN IMMEDIATE", wait=wait)
            try:
                yield
                self._con.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def entry(self, key: str) -> RawEntry | None:
        rows = self._read(f"SELECT {ENTRY_COLUMNS} FROM Cache WHERE key = ?", (key,))
        return _entry(rows[0]) if rows else None

    def entries(self, low: str, high: str, *, after: str = "", limit: int = 256) -> list[RawEntry]:
        """In the order of their keys, from the one after ``after``."""
        rows = self._read(
            f"SELECT {ENTRY_COLUMNS} FROM Cache WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
            (low, high, after, limit),
        )
        return [_entry(row) for row in rows]

    def entries_of(self, digest: str) -> list[RawEntry]:
        return [
            _entry(row) for row in self._read(f"SELECT {ENTRY_COLUMNS} FROM Cache WHERE tag = ?", (digest,))
        ]

    def by_standing(self, standing: Standing, *, limit: int, offset: int = 0) -> list[RawEntry]:
        rows = self._read(
            f"SELECT {ENTRY_COLUMNS} FROM Cache WHERE expire_time = ? LIMIT ? OFFSET ?",
            (standing.value, limit, offset),
        )
        return [_entry(row) for row in rows]

    def least_recently_used(self, *, before: float, limit: int, offset: int = 0) -> list[RawEntry]:
        """Bodies have no access_time and are never among them."""
        rows = self._read(
            f"SELECT {ENTRY_COLUMNS} FROM Cache WHERE access_time < ? ORDER BY access_time LIMIT ? OFFSET ?",
            (before, limit, offset),
        )
        return [_entry(row) for row in rows]

    def write_entry(self, key: str, value: str, *, digest: str, now: float) -> None:
        self._write(
            "INSERT INTO Cache (key, raw, store_time, access_time, access_count, tag, size, mode, value)"
            " VALUES (?, 1, ?, ?, 0, ?, 0, 1, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time,"
            " access_time = excluded.access_time, tag = excluded.tag, size = 0, mode = 1, filename = NULL,"
            " value = excluded.value",
            (key, now, now, digest, value),
        )

    def write_access(self, key: str, *, now: float) -> None:
        self._write("UPDATE Cache SET access_time = ? WHERE key = ?", (now, key))

    def rank(self, low: str, high: str, *, current: str, now: float, keep: int) -> None:
        """Give each revision of a document its standing: ``current`` first, the others by their last use."""
        # A clock that was ahead has left uses in the future; they would rank first until it is there again.
        self._write(
            "UPDATE Cache SET access_time = ? WHERE key >= ? AND key < ? AND access_time > ?",
            (now, low, high, now),
        )
        rows = self._read(
            "SELECT rowid, expire_time FROM Cache WHERE key >= ? AND key < ? AND (expire_time IS NOT ? OR key = ?)"
            " ORDER BY key = ? DESC, access_time DESC, rowid DESC",
            (low, high, Standing.OBSOLETE.value, current, current),
        )
        for place, (rowid, before) in enumerate(rows):
            after = None if place == 0 else Standing.SUPERSEDED if place <= keep else Standing.OBSOLETE
            if before != after:
                self._write(
                    "UPDATE Cache SET expire_time = ? WHERE rowid = ?", (after and after.value, rowid)
                )

    def clamp_access(self, *, now: float) -> None:
        """Let what was last used in the future by this clock have been used now."""
        self._write("UPDATE Cache SET access_time = ? WHERE access_time > ?", (now, now))

    def delete_rows(self, rowids: Iterable[int]) -> int:
        with self._translated(), self._exclusive():
            return int(
                self._con.executemany("DELETE FROM Cache WHERE rowid = ?", ((r,) for r in rowids)).rowcount
            )

    def body(self, digest: Digest) -> KnownBody | None:
        rows = self._read(
            "SELECT value, size, expire_time, store_time FROM Cache WHERE key = ?", (_body_key(digest),)
        )
        if not rows or rows[0][0] not in get_args(Encoding):
            return None
        [(encoding, size, standing, since)] = rows
        return KnownBody(encoding, int(size), math.inf if standing is None else float(since))

    def write_body(
        self, digest: Digest, *, encoding: Encoding, allocated: int, pending: bool, now: float
    ) -> None:
        self._write(
            "INSERT INTO Cache (key, raw, store_time, access_time, expire_time, access_count, size, mode, value)"
            " VALUES (?, 1, ?, NULL, ?, 0, ?, 1, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time,"
            " expire_time = excluded.expire_time, size = excluded.size, value = excluded.value",
            (_body_key(digest), now, Standing.PENDING.value if pending else None, allocated, encoding),
        )

    def delete_body(self, digest: str) -> int:
        """Its allocated bytes, 0 when it was not there."""
        sizes = self._read("SELECT size FROM Cache WHERE key = ?", (_body_key(digest),))
        self._write("DELETE FROM Cache WHERE key = ?", (_body_key(digest),))
        return int(sizes[0][0]) if sizes else 0

    def bodies(self, *, after: str = "", limit: int = 256) -> list[tuple[str, int, bool]]:
        """Digest, allocated bytes and whether it is pending, in the order of the digests."""
        rows = self._read(
            "SELECT substr(key, 6), size, expire_time IS NOT NULL FROM Cache"
            " WHERE key > ? AND key < 'body~' ORDER BY key LIMIT ?",
            (_body_key(after), limit),
        )
        return [(str(digest), int(size), bool(pending)) for digest, size, pending in rows]

    def pending(self, *, limit: int) -> list[tuple[str, float]]:
        """Digests of unfinished bodies and when each was begun."""
        rows = self._read(
            "SELECT substr(key, 6), store_time FROM Cache WHERE expire_time = ? LIMIT ?",
            (Standing.PENDING.value, limit),
        )
        return [(str(digest), float(since)) for digest, since in rows]

    def unreferenced(self, digests: Iterable[str]) -> list[str]:
        """Those that no entry names."""
        return [
            digest
            for digest in dict.fromkeys(digests)
            if not self._read("SELECT 1 FROM Cache WHERE tag = ? LIMIT 1", (digest,))
        ]

    def body_bytes(self) -> int:
        """Allocated bytes of all bodies in the index, the pending ones too."""
        return int(self._read("SELECT value FROM Settings WHERE key = 'size'")[0][0])

    def counts(self) -> tuple[int, int, int]:
        """Entries, superseded ones among them, bodies."""
        [(entries, superseded)] = self._read(
            "SELECT COUNT(*), COUNT(expire_time) FROM Cache WHERE key >= '[' AND key < '\\'"
        )
        [(bodies,)] = self._read("SELECT COUNT(*) FROM Cache WHERE key >= 'body ' AND key < 'body~'")
        return int(entries), int(superseded), int(bodies)

    def recount(self) -> None:
        """Make the sum that the triggers keep true again."""
        self._write(
            "UPDATE Settings SET value = (SELECT COALESCE(SUM(size), 0) FROM Cache) WHERE key = 'size'"
        )
        self._write("UPDATE Settings SET value = (SELECT COUNT(*) FROM Cache) WHERE key = 'count'")

    def note(self, name: str, value: float) -> None:
        """Remember a number that is not diskcache's, for ``noted``."""
        self._write("INSERT OR REPLACE INTO Settings (key, value) VALUES (?, ?)", (f"specmux_{name}", value))

    def noted(self, name: str) -> float | None:
        rows = self._read("SELECT value FROM Settings WHERE key = ?", (f"specmux_{name}",))
        return float(rows[0][0]) if rows and isinstance(rows[0][0], int | float) else None

    def free_bytes(self) -> int:
        """Of pages that ``shrink`` can give back."""
        [(pages,)] = self._read("PRAGMA freelist_count")
        [(size,)] = self._read("PRAGMA page_size")
        return int(pages) * int(size)

    def wal_bytes(self) -> int:
        """Allocated to the write-ahead log."""
        try:
            return self._path.with_name(f"{NAME}-wal").lstat().st_blocks * 512
        except FileNotFoundError:
            return 0

    def shrink(self, pages: int) -> bool:
        """Give up to this many free pages back to the file system; whether there may be more."""
        [(free,)] = self._read("PRAGMA freelist_count")
        if free:
            with self._translated(), self._exclusive():
                self._con.execute(f"PRAGMA incremental_vacuum({pages:d})").fetchall()
        return int(free) > pages

    def checkpoint(self) -> None:
        """Empty the WAL as far as readers let us."""
        with self._translated(), self._exclusive():
            # PASSIVE first: it stops no writer, and leaves little for TRUNCATE, which does.
            self._con.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self) -> None:
        """Rewrite the database; takes as much space again while it runs."""
        self._write("VACUUM")

    def problems(self) -> list[str]:
        """What SQLite itself finds wrong."""
        return [text for (text,) in self._read("PRAGMA integrity_check(20)") if text != "ok"]

    def _run(
        self, statement: str, values: Sequence[object] = (), *, wait: bool = True
    ) -> list[tuple[Any, ...]]:
        deadline = time.monotonic() + (self._busy_timeout if wait else 0.0)
        while True:
            try:
                rows: list[tuple[Any, ...]] = self._con.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                return rows

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._translated(), self._exclusive():
            return self._run(statement, values)

    def _write(self, statement: str, values: Sequence[object] = ()) -> None:
        self._read(statement, values)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._con  # noqa: B018  # after a fork it replaces the lock that the parent's threads may hold
        with self._lock:
            yield

    def _on_disk(self) -> tuple[int, int] | None:
        try:
            status = self._path.lstat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _refuse_newer(self) -> None:
        [(version,)] = self._con.execute("PRAGMA user_version").fetchall()
        if version > SCHEMA_VERSION:
            raise StoreUnavailable(
                f"its index is of version {version}, newer than ours", directory=self._where()
            )
        if version < SCHEMA_VERSION:
            self._con.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _where(self) -> str:
        return str(self._path.parent)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _kind(error)(f"index: {cut(str(error))}", directory=self._where()) from error


def _kind(error: sqlite3.Error) -> type[StoreError]:
    match _primary(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return StoreFull
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreUnavailable
        case _:
            # SQLITE_CORRUPT, SQLITE_NOTADB, and SQLITE_ERROR: a table or column that is not there.
            return StoreDamaged


def _primary(error: sqlite3.Error) -> int:
    # Extended codes carry the primary one in the low byte. Misuse of the module itself has none.
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR


def _entry(row: tuple[Any, ...]) -> RawEntry:
    rowid, key, tag, value, accessed_at, standing, sound = row
    numeric = isinstance(accessed_at, int | float)
    return RawEntry(
        rowid=rowid,
        key=str(key),
        digest=str(tag),
        value=str(value),
        accessed_at=accessed_at if numeric else 0.0,
        standing=standing,
        sound=bool(sound) and numeric,
    )


def _body_key(digest: str) -> str:
    return f"body {digest}"

"""One SQLite database by diskcache, with one connection that threads take in turn.

diskcache gives the schema, the settings and the triggers that keep the sum of the sizes; it is imported where
they are not as it made them. Three things it does not give are here: a connection that ``retire`` can close
whichever thread opened it (diskcache keeps one per thread), a transaction that tells a busy database from a
full or damaged one (diskcache reports all as a timeout), and settings that cannot be set by whoever wrote the
file (it runs every ``sqlite_…`` row as a PRAGMA).
Nothing is fsynced, as with the bodies: a killed process loses nothing by that, and after a power cut every
row and body is verified when it is read, and an index that SQLite cannot read is set aside. A checkpoint
that waits for a busy disk would be paid for by a put or a compaction.
Invariant: only StoreError and OSError leave this module, whatever sqlite3 and diskcache raise.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes

from specmux_cache.errors import (
    DiskFull,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from specmux_converters.errors import cut

INDEX_FILE: Final = "cache.db"
UNTOUCHED: Final = "?mode=ro&immutable=1"
"""URI parameters for opening the index read-only."""
SCHEMA_VERSION: Final = 1
OWN_PREFIX: Final = "specmux_"
"""Prefix of our rows in diskcache's table of settings."""
LAYOUT_KEY: Final = f"{OWN_PREFIX}layout"
SETTINGS_WITHOUT_COUNTS: Final = (
    "SELECT key, CASE WHEN key IN ('count', 'hits', 'misses', 'size') THEN 0 ELSE value END FROM Settings"
    " WHERE substr(key, 1, ?) != ? ORDER BY key"
)
SETTINGS: Final[dict[str, object]] = {
    "cull_limit": 0,  # diskcache evicts nothing by itself: compaction is ours
    "eviction_policy": "least-recently-used",  # for its index on access_time
    "statistics": 0,
    "tag_index": 1,
    # As in PRAGMAS and FORMAT, so that diskcache finds nothing to change.
    "sqlite_auto_vacuum": 2,
    "sqlite_cache_size": 8192,
    "sqlite_journal_mode": "wal",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 0,
}
PRAGMAS: Final = (
    "cache_size = 8192",
    "journal_size_limit = 4194304",  # at the size of a checkpoint, every one would truncate the log
    "mmap_size = 0",  # a truncated file under a map is SIGBUS
    "synchronous = OFF",  # see the docstring
    "trusted_schema = OFF",
    "wal_autocheckpoint = 256",
)
FORMAT: Final = (("auto_vacuum", 2, "INCREMENTAL"), ("journal_mode", "wal", "wal"))
"""The format of the file: pragma, value, how to set it. INCREMENTAL: it shrinks when compaction says so."""
RETRY_SECONDS: Final = 0.0005
"""Between two tries for the write lock. SQLite's own back-off sleeps up to 100 ms."""

Columns = tuple[Any, ...]


def uri_of(path: Path) -> str:
    """``Path.as_uri`` without the modules ``urllib.request`` and ``email``, which that imports since Python
    3.14."""
    return f"file://{quote_from_bytes(os.fsencode(path.absolute()))}"


class Database:
    """Every call raises StoreError: StoreBusy, DiskFull, StoreDamaged, or StoreUnavailable."""

    def __init__(self, directory: Path, *, busy_timeout: float, is_read_only: bool = False) -> None:
        """``is_read_only``: nobody writes; what a log beside the file says is not seen."""
        self.is_read_only = is_read_only
        self.path = directory / INDEX_FILE
        self._name = str(self.path)
        self._map = f"{self.path}-shm"
        self._map_state: tuple[tuple[int, int], int] | None = None
        """Device and number, and size, of the file that SQLite has mapped."""
        self._busy_timeout = busy_timeout
        self._turn = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inherited: list[sqlite3.Connection] = []
        self._owner = os.getpid()
        self._retired = False
        self._depth = 0
        try:
            self._create()
            self._refuse_newer()
            if is_read_only:
                self._identity = self._file_identity()
                return
            self._format()
            if not self._is_laid_out():
                self._lay_out()
            self._identity = self._file_identity()
        except (StoreError, OSError):
            self.retire()
            raise
        except Exception as error:
            # diskcache makes attributes and arguments of what the rows say: damage comes as any exception.
            self.retire()
            raise self._translate_error(error) from error

    @property
    def _con(self) -> sqlite3.Connection:
        """Opened when it is first used."""
        if self._connection is None:
            if self._retired:
                raise StoreUnavailable("closed", directory=self._where())
            self._connection = self._connect_file()
        self._repair_map()
        return self._connection

    def _repair_map(self) -> None:
        """Give the map of the log (``-shm``) its size back if somebody cut it: the next use would end the
        process with SIGBUS. Empty, SQLite makes it anew from the log."""
        try:
            status = os.lstat(self._map)
            known = self._map_state
            identity = status.st_dev, status.st_ino
            if known is None or (identity == known[0] and status.st_size > known[1]):
                self._map_state = identity, status.st_size
            elif identity == known[0] and status.st_size < known[1]:
                # By path: a descriptor that is closed would drop SQLite's locks.
                os.truncate(self._map, 0)
                os.truncate(self._map, known[1])
        except OSError:
            return  # there is none, such as without a log

    def retire(self) -> None:
        """Close for good."""
        self._retired = True
        with self._connection_lock():
            connection, self._connection = self._connection, None
            if connection is not None:
                self._repair_map()
                connection.close()

    def is_current(self) -> bool:
        """False when the file at this path is another than the one that is open."""
        self._repair_map()
        return self._identity == self._file_identity()

    @contextmanager
    def transaction(self, *, wait: bool = True) -> Iterator[None]:
        """Holds the write lock over all processes; nests. The calling thread has the connection meanwhile."""
        if self.is_read_only:
            yield
            return
        deadline = time.monotonic() + (self._busy_timeout if wait else 0.0)
        while True:
            with self._take_connection() as connection:
                if self._depth or self._begin(connection, deadline):
                    with self._nest_transaction(connection):
                        yield
                    return
            # Other threads may read between two tries.
            time.sleep(RETRY_SECONDS)

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Columns]:
        deadline = 0.0
        while True:
            with self._connection_lock():
                try:
                    return self._con.execute(statement, values).fetchall()
                except StoreError:
                    raise
                except Exception as error:
                    if _primary(error) != sqlite3.SQLITE_BUSY:
                        raise self._translate_error(error) from error
                    # What is never in a writer's way does not look at the clock.
                    deadline = deadline or time.monotonic() + self._busy_timeout
                    if time.monotonic() >= deadline:
                        raise self._translate_error(error) from error
            time.sleep(RETRY_SECONDS)

    def wal_bytes(self) -> int:
        """Allocated to the write-ahead log."""
        try:
            return os.lstat(f"{self.path}-wal").st_blocks * 512
        except OSError:
            return 0

    def checkpoint(self) -> None:
        """Empty the write-ahead log as far as readers let us."""
        # PASSIVE first: it stops no writer, and leaves little for TRUNCATE, which does.
        self.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _take_connection(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone."""
        with self._connection_lock():
            try:
                connection = self._con
            except StoreError:
                raise
            except Exception as error:
                raise self._translate_error(error) from error
            yield connection

    def _connection_lock(self) -> threading.RLock:
        if self._owner != os.getpid():
            # SQLite wants a connection left alone in a forked child, and no thread is left there to unlock.
            if self._connection is not None:
                self._inherited.append(self._connection)
            self._connection, self._turn, self._owner, self._depth = None, threading.RLock(), os.getpid(), 0
        return self._turn

    def free_bytes(self) -> int:
        """Bytes in pages that ``shrink`` can give back."""
        [(pages,)] = self.execute("PRAGMA freelist_count")
        [(size,)] = self.execute("PRAGMA page_size")
        return int(pages) * int(size)

    def shrink(self, pages: int) -> bool:
        """Give up to this many free pages back to the file system; whether there are more."""
        before = self.free_bytes()
        with self.transaction():
            for _ in range(pages):
                # Gives back one page per step of the statement, and sqlite3 makes one step.
                self.execute("PRAGMA incremental_vacuum(1)")
        return 0 < self.free_bytes() < before

    def _begin(self, connection: sqlite3.Connection, deadline: float) -> bool:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except Exception as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise self._translate_error(error) from error
            return False
        return True

    @contextmanager
    def _nest_transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        self._depth += 1
        try:
            yield
            if not connection.in_transaction:
                # SQLite has rolled back by itself, as it does for a full disk.
                raise DiskFull("index: the transaction was rolled back", directory=self._where())
            if self._depth == 1:
                self._run_statement(connection, "COMMIT")
        finally:
            self._depth -= 1
            if self._depth == 0 and connection.in_transaction:
                self._run_statement(connection, "ROLLBACK")

    def _run_statement(self, connection: sqlite3.Connection, statement: str) -> None:
        try:
            connection.execute(statement)
        except Exception as error:
            raise self._translate_error(error) from error

    def _connect_file(self) -> sqlite3.Connection:
        # Of a file that is immutable SQLite makes no log and takes no lock, neither of which it could.
        form = UNTOUCHED if self.is_read_only else ""
        connection = sqlite3.connect(
            f"{uri_of(self.path)}{form}",
            uri=True,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        # A flipped bit must not make a page of rows unreadable: what was not UTF-8 fails its checksum later.
        # Its bytes are kept, so that the row can be named.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            # From here on, waiting is ours: SQLite would hold the connection while it sleeps.
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self) -> None:
        # SQLite gives its other files the mode of this one. Never open one that exists: closing the
        # descriptor would drop the POSIX locks that other connections of this process hold on it.
        try:
            if self.is_read_only:
                raise FileExistsError
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            if self.path.is_symlink():
                raise StoreUnavailable("its index is a symlink", directory=self._where()) from None
        for suffix in ("", "-wal", "-shm"):
            path = Path(f"{self.path}{suffix}")
            # SQLite would wait for the other end of a FIFO for ever.
            if path.exists() and not path.is_file():
                raise StoreUnavailable(f"its {path.name} is not a regular file", directory=self._where())

    def _refuse_newer(self) -> None:
        [(version,)] = self.execute("PRAGMA user_version")
        if version > SCHEMA_VERSION:
            reason = f"its index is of version {version}, newer than ours"
            raise StoreUnavailable(reason, directory=self._where())

    def _format(self) -> None:
        for pragma, value, text in FORMAT:
            if self.execute(f"PRAGMA {pragma}") != [(value,)]:
                self.execute(f"PRAGMA {pragma} = {text}")

    def _is_laid_out(self) -> bool:
        """Whether everything is as ``_lay_out`` left it."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'"):
            return False
        kept = self.execute("SELECT value FROM Settings WHERE key = ?", (LAYOUT_KEY,))
        return kept == [(self._layout(),)]

    def _lay_out(self) -> None:
        from specmux_cache.store.plain_disk import KNOWN_SETTINGS, Tables  # diskcache takes long to import

        # diskcache writes every setting: in one transaction, that is two pages of log.
        with self.transaction():
            if self.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'"):
                for (key,) in self.execute("SELECT key FROM Settings"):
                    if key not in KNOWN_SETTINGS and not str(key).startswith(OWN_PREFIX):
                        self.execute("DELETE FROM Settings WHERE key = ?", (key,))
            Tables(self._where(), lambda: self._con, SETTINGS)
            self.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self.execute("INSERT OR REPLACE INTO Settings VALUES (?, ?)", (LAYOUT_KEY, self._layout()))

    def _layout(self) -> str:
        """A digest of tables, indexes, triggers and settings, without what is counted."""
        seen = [
            SETTINGS,
            self.execute("PRAGMA user_version"),
            self.execute("SELECT name, sql FROM sqlite_master ORDER BY name"),
            self.execute(SETTINGS_WITHOUT_COUNTS, (len(OWN_PREFIX), OWN_PREFIX)),
        ]
        return hashlib.sha256(repr(seen).encode("utf-8", "surrogateescape")).hexdigest()

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            status = os.lstat(self._name)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _where(self) -> str:
        return str(self.path.parent)

    def _translate_error(self, error: Exception) -> StoreError:
        kind = _kind(error)
        if self.is_read_only and _primary(error) == sqlite3.SQLITE_READONLY:
            kind = StoreReadOnly
        return kind(f"index: {cut(str(error))}", directory=self._where())


def _kind(error: Exception) -> type[StoreError]:
    if not isinstance(error, sqlite3.Error):
        # Such as UnicodeDecodeError, where SQLite's own message cites bytes that are no UTF-8.
        return StoreDamaged
    if isinstance(error, sqlite3.ProgrammingError):
        return StoreUnavailable  # closed by another thread
    match _primary(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return StoreBusy
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return DiskFull
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreUnavailable
        case _:
            # SQLITE_CORRUPT, SQLITE_NOTADB, and SQLITE_ERROR: a table or column that is not there.
            return StoreDamaged


def _primary(error: Exception) -> int:
    # Extended codes carry the primary one in the low byte. Misuse of the module itself has none.
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR

"""The rows of the index.

Two kinds. An entry: key ``[server, partition, group_version, media_type, hash]``, tag = digest, value =
sealed text, access_time = last use, filename = a small body, which has no file. A body: key ``body
<digest>``, tag = ``file `` and the digest of the stored bytes, size = allocated bytes, value = encoding,
store_time = begun. ``expire_time``, for which diskcache has an index, ranks rows for removal, see
``RowStanding``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from specmux_cache.store.database import OWN_PREFIX, Database
from specmux_cache.store.rows import ENCODINGS, Digest, Encoding
from specmux_converters.deferred_dataclasses import dataclass

ENTRY: Final = (
    "SELECT rowid, key, tag, value, access_time, expire_time, typeof(key) = 'text' AND raw = 1 AND mode = 1"
    " AND typeof(filename) IN ('null', 'blob') AND typeof(value) = 'text' AND typeof(tag) = 'text',"
    " filename IS NOT NULL"
)
WITH_BODY: Final = (
    ", filename, CASE WHEN filename IS NULL THEN"
    " (SELECT tag FROM Cache body WHERE body.key = 'body ' || entry.tag AND body.raw = 1) END"
)
"""The part of an entry's body in the index: all of a small one, the digest of another's file."""
VICTIM: Final = (
    "SELECT rowid, tag, filename IS NOT NULL,"
    " 2 * length(key) + 2 * length(tag) + length(value) + COALESCE(length(filename), 0),"
    " (SELECT size FROM Cache body WHERE body.key = 'body ' || entry.tag) FROM Cache entry"
)
"""Key and tag also occupy indexes of their own."""
BODY: Final = "SELECT substr(key, 6), value, size, expire_time, store_time, tag FROM Cache"
SUM_MAX: Final = 1 << 60
"""Bytes; a larger sum is damage, and close to overflowing SQLite's integers."""
SIZE_MAX: Final = 1 << 40
"""Bytes of one row; a size beyond, or below zero, is foreign and counts as nothing."""
VALUES_MAX: Final = 256
PAGE: Final = 256
"""Entries read at a time."""
ENTRY_RANGE: Final = ("[", "\\")
BODY_RANGE: Final = ("body ", "body!")
FILE_PREFIX: Final = "file "
"""Prefix of the digest of a body's file. The plain digest as tag belongs to an entry with those bytes as
body."""


class RowStanding(float, Enum):
    """Rank for removal; NULL for the revision of a document used last, and for a complete body."""

    OBSOLETE = 1.0
    """Superseded, with more revisions used later than are kept."""
    SUPERSEDED = 2.0
    PENDING = 3.0
    """A body being written; its file may not exist yet."""


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry before unsealing. ``is_sound`` is False if a column has the wrong type."""

    rowid: int
    key: str
    digest: str
    value: str
    accessed_at: float
    standing: float | None
    is_sound: bool
    is_inline: bool
    """Whether its body is in the row."""
    data: bytes | None = None
    """The stored bytes of a body in the row, if requested."""
    packed: str | None = None
    """The digest of the body's file, if requested and recorded."""


@dataclass(frozen=True, slots=True)
class Victim:
    """An entry that may be removed."""

    rowid: int
    digest: str
    is_inline: bool
    row_bytes: int
    allocated: int
    """Bytes of its body's file, which other entries may share."""


@dataclass(frozen=True, slots=True)
class KnownBody:
    """The index's record of a body."""

    digest: str
    encoding: Encoding
    allocated: int
    pending_since: float
    """inf for a complete body."""
    packed: str | None
    """The digest of its file, if recorded."""

    @property
    def is_pending(self) -> bool:
        return self.pending_since != math.inf


class Index:
    """Statements, each atomic; ``database.transaction`` combines several. Raises as Database does."""

    def __init__(self, directory: Path, *, busy_timeout: float, is_read_only: bool = False) -> None:
        self.database = Database(directory, busy_timeout=busy_timeout, is_read_only=is_read_only)

    def entry(self, key: str) -> RawEntry | None:
        """The entry with the part of its body in the index."""
        where = f"WHERE key = {_bound(key)} ORDER BY raw DESC LIMIT 1"
        found = self._entries(where, (_raw(key),), with_body=True)
        return found[0] if found else None

    def entries(
        self, low: str, high: str, *, after: str = "", limit: int = PAGE, with_body: bool = False
    ) -> list[RawEntry]:
        """In the order of their keys, after ``after``."""
        # A single lower bound: with two, SQLite seeks by the first and scans from there for each page.
        lower = f"key > {_bound(after)}" if after >= low else "key >= ?"
        where = f"WHERE {lower} AND key < ? ORDER BY key LIMIT ?"
        return self._entries(where, (_raw(after) if after >= low else low, high, limit), with_body=with_body)

    def entries_of(self, digest: str) -> list[RawEntry]:
        """Entries whose body is a file with this digest."""
        return self._entries("WHERE tag = ? AND filename IS NULL", (digest,))

    def by_standing(self, standing: RowStanding, *, limit: int, offset: int = 0) -> list[Victim]:
        return self._victims("WHERE expire_time = ? LIMIT ? OFFSET ?", (standing.value, limit, offset))

    def least_recently_used(self, *, before: float, limit: int, offset: int = 0) -> list[Victim]:
        """Bodies have no access_time and are never included."""
        where = "WHERE access_time < ? ORDER BY access_time LIMIT ? OFFSET ?"
        return self._victims(where, (before, limit, offset))

    def write_entry(self, key: str, value: str, *, digest: str, data: bytes | None, now: float) -> None:
        """``data``: the stored bytes of a body to store in the row."""
        self.database.execute(
            "INSERT INTO Cache (key, raw, store_time, access_time, access_count, tag, size, mode, filename,"
            " value) VALUES (?, 1, ?, ?, 0, ?, 0, 1, ?, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time,"
            " access_time = excluded.access_time, tag = excluded.tag, size = 0, mode = 1,"
            " filename = excluded.filename, value = excluded.value",
            (key, now, now, digest, data, value),
        )

    def named_file(self, key: str) -> str | None:
        """The digest of the file that this entry names."""
        rows = self.database.execute("SELECT tag FROM Cache WHERE key = ? AND filename IS NULL", (key,))
        return str(rows[0][0]) if rows else None

    def write_access(self, key: str, *, now: float) -> None:
        self.database.execute("UPDATE Cache SET access_time = ? WHERE key = ?", (now, key))

    def clamp_access(self, *, now: float) -> None:
        """Change uses in the future to now."""
        self.database.execute("UPDATE Cache SET access_time = ? WHERE access_time > ?", (now, now))

    def rank(self, low: str, high: str, *, current: str, now: float, keep: int) -> None:
        """Rank each revision of a document: ``current`` first, the others by their last use."""
        rows = self.database.execute(
            # A clock that was ahead has left uses in the future, which would rank first.
            "SELECT rowid, expire_time FROM Cache WHERE key >= ? AND key < ?"
            " AND (expire_time IS NOT ? OR key = ?)"
            " ORDER BY key = ? DESC, min(access_time, ?) DESC, rowid DESC",
            (low, high, RowStanding.OBSOLETE.value, current, current, now),
        )
        for place, (rowid, before) in enumerate(rows):
            after = (
                None
                if place == 0
                else (RowStanding.SUPERSEDED if place <= keep else RowStanding.OBSOLETE).value
            )
            if before != after:
                self.database.execute("UPDATE Cache SET expire_time = ? WHERE rowid = ?", (after, rowid))

    def delete_rows(self, rowids: Iterable[int]) -> None:
        """Only for rows read in the same transaction: SQLite reuses rowids."""
        gone = list(rowids)
        self._among("DELETE FROM Cache WHERE rowid IN", gone)

    def body(self, digest: str) -> KnownBody | None:
        key = _body_key(digest)
        found = self._bodies(f"WHERE key = {_bound(key)}", (_raw(key),))
        return found[0] if found else None

    def bodies(self, *, after: str = "", limit: int = 256) -> list[KnownBody]:
        """In the order of their digests, after ``after``."""
        where = "WHERE key > ? AND key < ? ORDER BY key LIMIT ?"
        return self._bodies(where, (_body_key(after), BODY_RANGE[1], limit))

    def pending(self, *, limit: int) -> list[KnownBody]:
        """Bodies begun but not completed."""
        return self._bodies("WHERE expire_time = ? LIMIT ?", (RowStanding.PENDING.value, limit))

    def write_body(
        self,
        digest: Digest,
        *,
        encoding: Encoding,
        allocated: int,
        pending: bool,
        now: float,
        packed: Digest | None = None,
    ) -> None:
        self.database.execute(
            "INSERT INTO Cache (key, raw, store_time, access_time, expire_time, access_count, tag, size,"
            " mode, value) VALUES (?, 1, ?, NULL, ?, 0, ?, ?, 1, ?)"
            " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, access_time = NULL,"
            " expire_time = excluded.expire_time, tag = excluded.tag, size = excluded.size,"
            " value = excluded.value",
            (
                _body_key(digest),
                now,
                RowStanding.PENDING.value if pending else None,
                None if packed is None else FILE_PREFIX + packed,
                allocated,
                encoding,
            ),
        )

    def delete_bodies(self, digests: Iterable[str]) -> None:
        gone = [_body_key(digest) for digest in digests]
        self._among("DELETE FROM Cache WHERE key IN", gone)

    def unreferenced(self, digests: Iterable[str]) -> list[str]:
        """Those whose file no entry names."""
        asked = list(dict.fromkeys(digests))
        rows = self._among("SELECT tag FROM Cache WHERE filename IS NULL AND tag IN", asked)
        return list(dict.fromkeys(asked).keys() - {tag for (tag,) in rows})

    def unknown(self, digests: Iterable[str]) -> list[str]:
        """Those without a body in the index."""
        asked = [_body_key(digest) for digest in digests]
        rows = self._among("SELECT key FROM Cache WHERE key IN", asked)
        return [
            key.removeprefix(BODY_RANGE[0]) for key in dict.fromkeys(asked).keys() - {key for (key,) in rows}
        ]

    def references(self, digests: Sequence[str]) -> dict[str, int]:
        """Number of entries that name the file of each."""
        statement = "SELECT tag, COUNT(*) FROM Cache WHERE filename IS NULL AND tag IN"
        return dict(self._among(statement, digests, end=" GROUP BY tag"))

    def body_bytes(self) -> int:
        """Allocated bytes of all bodies in the index, including pending ones."""
        rows = self.database.execute("SELECT value FROM Settings WHERE key = 'size'")
        if not (rows and isinstance(rows[0][0], int)):
            self.correct_sum()
            rows = self.database.execute("SELECT value FROM Settings WHERE key = 'size'")
        return int(rows[0][0])

    def error_of_sum(self) -> int:
        """By how many bytes the sum kept by diskcache's triggers is too large. Scans every row."""
        [(kept, actual)] = self.database.execute(
            "SELECT (SELECT value FROM Settings WHERE key = 'size'), COALESCE(SUM(size), 0) FROM Cache"
            " WHERE typeof(size) = 'integer' AND size BETWEEN 0 AND ?",
            (SIZE_MAX,),
        )
        return (kept if isinstance(kept, int) and abs(kept) <= SUM_MAX else 0) - int(actual)

    def correct_sum(self) -> int:
        """Correct the sum; returns by how many bytes it was too large."""
        # The error does not change while others write, so rows can be counted without the lock.
        error = self.error_of_sum()
        self.database.execute(
            "INSERT INTO Settings VALUES ('size', ?) ON CONFLICT (key) DO UPDATE SET value ="
            " CASE WHEN typeof(value) = 'integer' AND value BETWEEN ? AND ? THEN value ELSE 0 END"
            " + excluded.value",
            (-error, -SUM_MAX, SUM_MAX),
        )
        return error

    def counts(self) -> tuple[int, int, int]:
        """Number of entries, superseded entries, and bodies."""
        count = "SELECT COUNT(*), COUNT(expire_time) FROM Cache WHERE key >= ? AND key < ?"
        [(entries, superseded)] = self.database.execute(count, ENTRY_RANGE)
        [(bodies, _)] = self.database.execute(count, BODY_RANGE)
        return int(entries), int(superseded), int(bodies)

    def strangers(self) -> list[int]:
        """Rows of neither kind."""
        rows = self.database.execute(
            "SELECT rowid FROM Cache"
            " WHERE NOT (typeof(key) = 'text' AND (key >= ? AND key < ? OR key >= ? AND key < ?))",
            (*ENTRY_RANGE, *BODY_RANGE),
        )
        return [rowid for (rowid,) in rows]

    def unnamed_bodies(self) -> list[str]:
        """Complete bodies that no entry names."""
        rows = self.database.execute(
            "SELECT substr(key, 6) FROM Cache body WHERE key >= ? AND key < ? AND expire_time IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM Cache entry WHERE entry.tag = substr(body.key, 6)"
            " AND entry.filename IS NULL)",
            BODY_RANGE,
        )
        return [str(digest) for (digest,) in rows]

    def note(self, name: str, value: float) -> None:
        """Store a number for ``noted``."""
        self.database.execute("INSERT OR REPLACE INTO Settings VALUES (?, ?)", (OWN_PREFIX + name, value))

    def noted(self, name: str) -> float | None:
        rows = self.database.execute("SELECT value FROM Settings WHERE key = ?", (OWN_PREFIX + name,))
        return float(rows[0][0]) if rows and isinstance(rows[0][0], int | float) else None

    def rebuild(self) -> None:
        """Rebuild SQLite's indexes from the rows."""
        self.database.execute("REINDEX")

    def problems(self) -> list[str]:
        """Faults reported by SQLite itself."""
        return [text for (text,) in self.database.execute("PRAGMA integrity_check(20)") if text != "ok"]

    def _among(self, statement: str, values: Sequence[object], *, end: str = "") -> list[tuple[Any, ...]]:
        """``statement`` ends in IN. SQLite limits the number of values."""
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(values), VALUES_MAX):
            part = values[start : start + VALUES_MAX]
            bound = ",".join(map(_bound, part))
            rows += self.database.execute(f"{statement} ({bound}){end}", [_raw(value) for value in part])
        return rows

    def _entries(self, where: str, values: Sequence[object], *, with_body: bool = False) -> list[RawEntry]:
        statement = f"{ENTRY}{WITH_BODY if with_body else ''} FROM Cache entry {where}"
        return [_raw_entry(columns) for columns in self.database.execute(statement, values)]

    def _victims(self, where: str, values: Sequence[object]) -> list[Victim]:
        return [
            Victim(rowid, str(digest), bool(is_inline), row or 0, size if isinstance(size, int) else 0)
            for rowid, digest, is_inline, row, size in self.database.execute(f"{VICTIM} {where}", values)
        ]

    def _bodies(self, where: str, values: Sequence[object]) -> list[KnownBody]:
        return [_known_body(*columns) for columns in self.database.execute(f"{BODY} {where}", values)]


def _raw_entry(columns: Sequence[Any]) -> RawEntry:
    """From the columns of ENTRY, and those of WITH_BODY if requested."""
    rowid, key, tag, value, accessed_at, standing, is_sound, is_inline, *body = columns
    data, packed = body or (None, None)
    is_timed = isinstance(accessed_at, int | float)
    return RawEntry(
        rowid=rowid,
        key=str(key),
        digest=str(tag),
        value=str(value),
        accessed_at=float(accessed_at) if is_timed else 0.0,
        standing=standing if isinstance(standing, float) else None,
        is_sound=bool(is_sound) and is_timed,
        is_inline=bool(is_inline),
        data=data if isinstance(data, bytes) else None,
        packed=_packed(packed),
    )


def _known_body(
    digest: object, encoding: Any, size: Any, standing: Any, since: Any, tag: object
) -> KnownBody:
    is_whole = standing is None and encoding in ENCODINGS and isinstance(size, int)
    return KnownBody(
        digest=str(digest),
        encoding=encoding if is_whole else "identity",
        allocated=size if isinstance(size, int) else 0,
        pending_since=math.inf if is_whole else float(since) if isinstance(since, int | float) else 0.0,
        packed=_packed(tag),
    )


def _packed(tag: object) -> str | None:
    return tag.removeprefix(FILE_PREFIX) if isinstance(tag, str) else None


def _bound(value: object) -> str:
    """The SQL parameter for a value that was read."""
    return "CAST(? AS TEXT)" if isinstance(value, str) and not value.isascii() else "?"


def _raw(value: object) -> object:
    """The value as stored in the database: text is ASCII, and damaged text is its raw bytes."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "surrogateescape")
    return value


def _body_key(digest: str) -> str:
    return f"body {digest}"

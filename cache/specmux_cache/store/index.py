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
from specmux_cache.store.rows import (
    ENCODINGS,
    FILE_PREFIX,
    Digest,
    Encoding,
    EntryRows,
    as_parameter,
    packed_in,
    raw_value,
)
from specmux_converters.lazy.dataclasses import dataclass

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
ENTRY_RANGE: Final = ("[", "\\")
BODY_RANGE: Final = ("body ", "body!")


class RowStanding(float, Enum):
    """Rank for removal; NULL for the revision of a document used last, and for a complete body."""

    OBSOLETE = 1.0
    """Superseded, with more revisions used later than are kept."""
    SUPERSEDED = 2.0
    PENDING = 3.0
    """A body being written; its file may not exist yet."""


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
        self.rows = EntryRows(self.database)

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

    def rank(self, low: str, high: str, *, current: str, keep: int) -> None:
        """Rank each revision of a document: ``current`` first, the others by their last use."""
        rows = self.database.execute(
            # Not compared with the clock, which may be wrong now, or have been wrong then.
            "SELECT rowid, expire_time FROM Cache WHERE key >= ? AND key < ?"
            " AND (expire_time IS NOT ? OR key = ?)"
            " ORDER BY key = ? DESC, access_time DESC, rowid DESC",
            (low, high, RowStanding.OBSOLETE.value, current, current),
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
        found = self._bodies(f"WHERE key = {as_parameter(key)}", (raw_value(key),))
        return found[0] if found else None

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

    def list_unreferenced(self, digests: Iterable[str]) -> list[str]:
        """The digests whose file no entry names."""
        asked = list(dict.fromkeys(digests))
        rows = self._among("SELECT tag FROM Cache WHERE filename IS NULL AND tag IN", asked)
        return list(dict.fromkeys(asked).keys() - {tag for (tag,) in rows})

    def unknown(self, digests: Iterable[str]) -> list[str]:
        """The digests without a body in the index."""
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
        """Bytes by which the sum kept by diskcache's triggers is too large. Scans every row."""
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

    def read_note(self, name: str) -> float | None:
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
            places = ",".join(map(as_parameter, part))
            rows += self.database.execute(
                f"{statement} ({places}){end}", [raw_value(value) for value in part]
            )
        return rows

    def _victims(self, where: str, values: Sequence[object]) -> list[Victim]:
        return [
            Victim(rowid, str(digest), bool(is_inline), row or 0, size if isinstance(size, int) else 0)
            for rowid, digest, is_inline, row, size in self.database.execute(f"{VICTIM} {where}", values)
        ]

    def _bodies(self, where: str, values: Sequence[object]) -> list[KnownBody]:
        return [_known_body(*columns) for columns in self.database.execute(f"{BODY} {where}", values)]


def _known_body(
    digest: object, encoding: Any, size: Any, standing: Any, since: Any, tag: object
) -> KnownBody:
    is_whole = standing is None and encoding in ENCODINGS and isinstance(size, int)
    return KnownBody(
        digest=str(digest),
        encoding=encoding if is_whole else "identity",
        pending_since=math.inf if is_whole else float(since) if isinstance(since, int | float) else 0.0,
        packed=packed_in(tag),
    )


def _body_key(digest: str) -> str:
    return f"body {digest}"

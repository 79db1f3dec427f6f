"""Entries of the index: how their rows are read, and their form in the database.

Invariant: a row that ``seal`` did not write for exactly this key and digest does not ``unseal``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NewType, TypeAlias, cast, get_args

from specmux_cache.store.database import Database
from specmux_cache.store.keys import Key
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

Digest = NewType("Digest", str)
"""sha256 of the body as passed by the caller, 64 lower-case hex digits."""

Scalar: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = "Mapping[str, Scalar]"
Encoding = Literal["zstd", "identity"]

DIGEST: Final = pattern(r"[0-9a-f]{64}")
ENCODINGS: Final = get_args(Encoding)
SEAL_DIGITS: Final = 32
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
PAGE: Final = 256
"""Entries read at a time."""
FILE_PREFIX: Final = "file "
"""Prefix of the digest of a body's file. The plain digest as tag belongs to an entry with those bytes as
body."""

_DENSE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""``json.dumps`` would create an encoder for each call with a non-default form."""
_READ: Final = json.JSONDecoder().raw_decode
"""``json.loads`` would search for white space around, which ``_DENSE`` never writes."""


@dataclass(frozen=True, slots=True)
class Row:
    """A stored entry without its body. Times are seconds since the epoch, by the store's clock."""

    key: Key
    digest: Digest
    size: int
    """Bytes of the body as passed by the caller."""
    encoding: Encoding
    stored_at: float
    touched_at: float
    """When it was stored or last revalidated."""
    accessed_at: float
    """Last use, at most a minute behind."""
    metadata: Metadata
    superseded: bool = False
    """True if a revision used later exists."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its body, whose sha256 was verified."""

    row: Row
    body: bytes


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


class EntryRows:
    """Reads entries, each call in one statement. Raises as Database does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> RawEntry | None:
        """The entry with the part of its body in the index."""
        where = f"WHERE key = {as_parameter(key)} ORDER BY raw DESC LIMIT 1"
        found = self._entries(where, (raw_value(key),), with_body=True)
        return found[0] if found else None

    def page(
        self, low: str, high: str, *, after: str = "", limit: int = PAGE, with_body: bool = False
    ) -> list[RawEntry]:
        """In the order of their keys, after ``after``."""
        # A single lower bound: with two, SQLite seeks by the first and scans from there for each page.
        lower = f"key > {as_parameter(after)}" if after >= low else "key >= ?"
        where = f"WHERE {lower} AND key < ? ORDER BY key LIMIT ?"
        return self._entries(
            where, (raw_value(after) if after >= low else low, high, limit), with_body=with_body
        )

    def of_body(self, digest: str) -> list[RawEntry]:
        """Entries whose body is a file with this digest."""
        return self._entries("WHERE tag = ? AND filename IS NULL", (digest,))

    def _entries(self, where: str, values: Sequence[object], *, with_body: bool = False) -> list[RawEntry]:
        statement = f"{ENTRY}{WITH_BODY if with_body else ''} FROM Cache entry {where}"
        return [_raw_entry(columns) for columns in self._database.execute(statement, values)]


def is_digest(text: str) -> bool:
    return DIGEST.fullmatch(text) is not None


def key_text(key: Key) -> str:
    """The key in the database. Fields go from general to specific, so a prefix is a range."""
    return _DENSE([key.server, key.partition, key.group_version, key.media_type, key.hash])


def key_range(*fields: str) -> tuple[str, str]:
    """[low, high) of the keys that start with these: server, partition, group_version, media_type."""
    if not fields:
        return "[", "\\"
    prefix = _DENSE(fields)[:-1] + ","
    return prefix + '"', prefix + "#"


def parse_key(text: str) -> Key:
    """Raises ValueError for what ``key_text`` did not write."""
    fields, _ = _READ(text)
    if not (
        isinstance(fields, list) and len(fields) == 5 and all(isinstance(field, str) for field in fields)
    ):
        raise ValueError("not a key")
    server, partition, group_version, media_type, hash_ = fields
    return Key(server, partition, group_version, hash_, media_type)


def seal(row: Row) -> str:
    """The row as text, preceded by a checksum over key, digest and text. Raises ValueError for a NaN."""
    payload = _DENSE([row.size, row.encoding, row.stored_at, row.touched_at, dict(row.metadata)])
    return _checksum(key_text(row.key), row.digest, payload) + payload


def unseal(
    text: str, *, key: str, digest: str, accessed_at: float, superseded: bool, of: Key | None = None
) -> Row:
    """Raises ValueError for anything that ``seal`` did not write for this key and digest.

    ``of``: the key before it was text, if the caller has it.
    """
    given, payload = text[:SEAL_DIGITS], text[SEAL_DIGITS:]
    if given != _checksum(key, digest, payload):
        raise ValueError("the row's checksum does not match")
    (size, encoding, stored_at, touched_at, metadata), _ = _READ(payload)
    if encoding not in ENCODINGS:
        raise ValueError("unknown encoding of the body")
    return Row(
        key=parse_key(key) if of is None else of,
        digest=Digest(digest),
        size=size,
        encoding=cast("Encoding", encoding),
        stored_at=stored_at,
        touched_at=touched_at,
        accessed_at=accessed_at,
        metadata=MappingProxyType(metadata),
        superseded=superseded,
    )


def unseal_entry(raw: RawEntry, key: Key | None = None) -> Row | None:
    """The row; None if it was not sealed for this key and digest. ``key``: that of the row."""
    if not (raw.is_sound and is_digest(raw.digest)):
        return None
    try:
        return unseal(
            raw.value,
            key=raw.key,
            digest=raw.digest,
            accessed_at=raw.accessed_at,
            superseded=raw.standing is not None,
            of=key,
        )
    except (ValueError, TypeError):
        return None


def as_parameter(value: object) -> str:
    """The SQL parameter for a value that was read."""
    return "CAST(? AS TEXT)" if isinstance(value, str) and not value.isascii() else "?"


def raw_value(value: object) -> object:
    """The value as stored in the database: text is ASCII, and damaged text is its raw bytes."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "surrogateescape")
    return value


def packed_in(tag: object) -> str | None:
    return tag.removeprefix(FILE_PREFIX) if isinstance(tag, str) else None


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
        packed=packed_in(packed),
    )


def _checksum(key: str, digest: str, payload: str) -> str:
    text = f"{key}\0{digest}\0{payload}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SEAL_DIGITS]

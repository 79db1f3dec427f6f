"""Entries of the index, and their form in the database.

Invariant: a row that ``seal`` did not write for exactly this key and digest does not ``unseal``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NewType, TypeAlias, cast, get_args

from specmux_cache.store.keys import Key
from specmux_converters.deferred_dataclasses import dataclass

Digest = NewType("Digest", str)
"""sha256 of the body as passed by the caller, 64 lower-case hex digits."""

Scalar: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = "Mapping[str, Scalar]"
Encoding = Literal["zstd", "identity"]

ENCODINGS: Final = get_args(Encoding)
SEAL_DIGITS: Final = 32


_DENSE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""``json.dumps`` would create an encoder for each call with a non-default form."""
_READ: Final = json.JSONDecoder().raw_decode
"""``json.loads`` would search for white space around, which ``_DENSE`` never writes."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry. Times are seconds since the epoch by the store's clock."""

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
    """Whether a revision used later exists."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its body, whose sha256 was verified."""

    row: Row
    body: bytes


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


def _checksum(key: str, digest: str, payload: str) -> str:
    text = f"{key}\0{digest}\0{payload}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SEAL_DIGITS]

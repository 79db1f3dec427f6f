"""What of a request can change its answer, and the words of RFC 9110 for it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, NewType

ETag = NewType("ETag", str)
"""An entity tag as it stands on the wire, quotes included (RFC 9110 8.8.3)."""


class Coding(StrEnum):
    """Content codings we serve (RFC 9110 8.4.1)."""

    IDENTITY = "identity"
    GZIP = "gzip"
    ZSTD = "zstd"


class Request(NamedTuple):
    """What of a request can change its answer; two that are equal have the same. Repeated header fields are
    joined by ", " (RFC 9110 5.3)."""

    method: str
    path: str
    """As on the wire: never percent-decoded."""
    query: str = ""
    """As on the wire, without "?"."""
    accept: str | None = None
    accept_encoding: str | None = None
    if_none_match: str | None = None
    if_match: str | None = None

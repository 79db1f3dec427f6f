"""A server's answer, and the part of it that is stored beside the body."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import orjson

from specmux_cache.http.header_fields import Fields, end_to_end, fields_from_text, fields_to_text, first
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import Digest, Metadata
from specmux_converters.deferred_dataclasses import dataclass

LOSSES: Final = "specmux-losses"
"""Response field: number of constructs that a document lost in conversion from Swagger 2.0."""
KEPT_FIELDS: Final = frozenset(
    {
        "age",
        "cache-control",
        "content-type",
        "date",
        "etag",
        "expires",
        "last-modified",
        LOSSES,
        "vary",
        "warning",
    }
)
"""The fields that are stored of an answer with too many."""
SENTENCE_MAX: Final = 400
"""Characters of a refusal's message."""
STATUS_MAX: Final = 64 * 1024
"""Bytes of the largest Status that is parsed."""
FIELDS_TEXT_MAX: Final = 8192
"""Characters of the stored fields as text."""

Selecting: TypeAlias = "Mapping[str, str | None]"
"""Request field in Vary -> its value in the request; None if absent (RFC 9111 4.1)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer; gzip or zstd of its body is decoded. Times are seconds since the epoch."""

    status: int
    fields: Fields
    body: bytes
    requested_at: float
    received_at: float


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A stored answer without its body."""

    fields: Fields
    requested_at: float
    received_at: float
    """When it was stored or last confirmed by the server."""
    selecting: Selecting

    @property
    def etag(self) -> str | None:
        return first(self.fields, "etag")

    @property
    def is_lossy(self) -> bool:
        return (first(self.fields, LOSSES) or "0") != "0"


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer with its verified body."""

    key: Key
    held: StoredHead
    body: bytes
    digest: Digest


def sentence_of(answer: Answer) -> str:
    """The message of a refusal: of a Kubernetes Status, or the first line of plain text."""
    media_type = (first(answer.fields, "content-type") or "").partition(";")[0].strip().lower()
    if media_type == "text/plain":
        return answer.body[:SENTENCE_MAX].decode(errors="replace").strip().partition("\n")[0]
    if media_type != "application/json" or len(answer.body) > STATUS_MAX:
        return ""
    try:
        status = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return ""
    message = status.get("message") if isinstance(status, dict) else None
    return message[:SENTENCE_MAX] if isinstance(message, str) else ""


def held_of(answer: Answer, selecting: Selecting) -> StoredHead:
    """The part of an answer to store."""
    fields = end_to_end(answer.fields)
    if len(fields_to_text(fields)) > FIELDS_TEXT_MAX:
        fields = tuple((name, value[:512]) for name, value in fields if name in KEPT_FIELDS)
    return StoredHead(fields, answer.requested_at, answer.received_at, selecting)


def metadata_of(held: StoredHead) -> Metadata:
    """The metadata of a row. ``selecting`` was already reduced to what may be stored."""
    return {
        "fields": fields_to_text(held.fields),
        "requested_at": held.requested_at,
        "received_at": held.received_at,
        "selecting": fields_to_text(tuple((name, value or "") for name, value in held.selecting.items())),
        "absent": ",".join(name for name, value in held.selecting.items() if value is None),
        "lossy": held.is_lossy,
    }


def held_from(metadata: Mapping[str, Any]) -> StoredHead | None:
    """None for metadata that ``metadata_of`` did not write; counts as absent."""
    try:
        absent = set(str(metadata["absent"]).split(","))
        return StoredHead(
            fields=fields_from_text(metadata["fields"]),
            requested_at=float(metadata["requested_at"]),
            received_at=float(metadata["received_at"]),
            selecting=MappingProxyType(
                {
                    name: None if name in absent else value
                    for name, value in fields_from_text(metadata["selecting"])
                }
            ),
        )
    except (KeyError, TypeError, ValueError):
        return None

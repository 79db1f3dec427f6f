"""A Document is the plain JSON tree of one OpenAPI or Swagger document; here it is parsed and hashed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from specmux_converters.errors import InvalidDocument, LimitExceeded

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """What an untrusted document may cost."""

    max_bytes: int = 64 * 1024 * 1024
    max_depth: int = 200
    max_expanded_bytes: int = 256 * 1024 * 1024
    """JSON of all documents made from one: references written out and shared components multiply it."""


DEFAULT_LIMITS: Final = Limits()


def parse(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Document:
    """The JSON object in ``data``, in its own key order.

    Raises InvalidDocument for what is not one JSON object, LimitExceeded past ``limits``.
    """
    if len(data) > limits.max_bytes:
        raise LimitExceeded(f"{len(data)} bytes, more than the {limits.max_bytes} allowed")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidDocument(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    if not isinstance(document, dict):
        raise InvalidDocument("not a JSON object")
    return document


def canonical(document: Document) -> bytes:
    """The one JSON text of this content: keys sorted, no white space."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def content_hash(canonical_json: bytes) -> str:
    """Upper-case hex SHA-512 of ``canonical()``: equal content has equal hashes on every replica."""
    return hashlib.sha512(canonical_json).hexdigest().upper()

"""The parts of a request that change its answer, in the terms of RFC 9110, and reasons of refusals."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, NewType

ETag = NewType("ETag", str)
"""An entity tag as sent, including quotes (RFC 9110 8.8.3)."""


REASONS: Final = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    431: "RequestHeaderFieldsTooLarge",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""The reason of a ``Status`` (metav1.Status) by HTTP status."""


class Coding(StrEnum):
    """Supported content codings (RFC 9110 8.4.1)."""

    IDENTITY = "identity"
    GZIP = "gzip"
    ZSTD = "zstd"


class Request(NamedTuple):
    """The parts of a request that can change its answer; equal requests have equal answers. Repeated header
    fields are joined by ", " (RFC 9110 5.3)."""

    method: str
    path: str
    """The path as received: never percent-decoded."""
    query: str = ""
    """The query as received, without "?"."""
    accept: str | None = None
    accept_encoding: str | None = None
    if_none_match: str | None = None
    if_match: str | None = None
    dictionary: str | None = None
    """Available-Dictionary and Dictionary-ID, separated by a space."""

"""Check that a document served natively by a backend is the requested one. Pure.

If the SHA-512 of the bytes equals the hash, as Kubernetes computes it, they are exactly what the backend
announced. Otherwise they must be a complete OpenAPI v3 document, and nothing may contradict the hash. The
bytes are passed on unchanged, so other properties, such as duplicate keys or depth, are checked only when
another form is made.
"""

from __future__ import annotations

from typing import Final

import orjson

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_converters.document import DocumentKind, Limits, content_hash, kind_of
from specmux_converters.errors import LimitExceeded

END: Final = 256
"""Bytes at either end of a document that are searched first."""


def is_proven(body: bytes, coding: Coding, asked: Hash, *, limits: Limits) -> bool | Failure:
    """Whether the hash proves the bytes, which then need no parsing; a quick check distinguishes JSON from an
    error page.

    Mostly runs without the GIL, so a thread is sufficient for a large document.
    """
    plain = _plain(body, coding, limits)
    if isinstance(plain, Failure):
        return plain
    looks_right = plain.lstrip()[:1] == b"{" and plain.rstrip()[-1:] == b"}" and _names_openapi(plain)
    return looks_right and content_hash(plain) == asked.upper()


def _names_openapi(plain: bytes) -> bool:
    """Whether the version key is present. It is nearly always near one end; searching megabytes takes a
    quarter as long as hashing them."""
    name = b'"openapi"'
    return name in plain[:END] or name in plain[-END:] or name in plain


def fault_of(body: bytes, coding: Coding, *, limits: Limits) -> Failure | None:
    """Why the bytes are not a complete OpenAPI v3 document; None if they are."""
    plain = _plain(body, coding, limits)
    if isinstance(plain, Failure):
        return plain
    try:
        limits.check_values(plain)
        document = orjson.loads(plain)
    except LimitExceeded as error:
        return Failure(Cause.TOO_LARGE, str(error))
    except orjson.JSONDecodeError as error:
        return Failure(Cause.BAD_BODY, f"not JSON: {error.msg} at byte {error.pos}")
    if not isinstance(document, dict) or kind_of(document) is not DocumentKind.OPENAPI_3:
        return Failure(Cause.BAD_BODY, 'not an OpenAPI v3 document: "openapi" is missing or no 3.x')
    return None


def contradicts(etag: str | None, asked: Hash) -> bool:
    """Whether an entity tag is a hash of the same kind but differs: the document changed and no redirect was
    sent. Other tags prove nothing, since servers may choose any."""
    tag = (etag or "").removeprefix("W/").strip('"').upper()
    return len(tag) == len(asked) >= 32 and tag.isalnum() and tag != asked.upper()


def _plain(body: bytes, coding: Coding, limits: Limits) -> bytes | Failure:
    try:
        return decode_body(body, coding, max_bytes=limits.max_bytes)
    except TooLarge as error:
        return Failure(Cause.TOO_LARGE, str(error))
    except BadCoding as error:
        return Failure(Cause.TRUNCATED, str(error))

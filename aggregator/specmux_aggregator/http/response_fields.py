"""Parse the status and header fields of a backend's answer strictly. Pure."""

from __future__ import annotations

import email.utils
import re
from typing import Final

from specmux_aggregator.http.messages import Coding, ETag
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.errors import cut

RETRY_AFTER_MAX: Final = 3600.0
"""Seconds; the longest pause that a backend can ask for."""

ETAG_MAX: Final = 512
"""Characters of the longest entity tag that is kept for conditional requests."""

_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')
_CODINGS: Final = {
    "": Coding.IDENTITY,
    "identity": Coding.IDENTITY,
    "gzip": Coding.GZIP,
    "x-gzip": Coding.GZIP,
}
_CAUSES: Final = {
    401: Cause.CREDENTIALS,
    403: Cause.CREDENTIALS,
    404: Cause.NOT_FOUND,
    406: Cause.NOT_ACCEPTABLE,
    429: Cause.THROTTLED,
}


class UnaskedCoding(ValueError):
    """The answer has a content coding that was not requested; the message is for people."""


def coding(content_encoding: str) -> Coding:
    """The single content coding (RFC 9110 8.4). Raises UnaskedCoding."""
    name = content_encoding.strip().lower()
    if name not in _CODINGS:
        raise UnaskedCoding(f"the content coding {cut(name)} was not asked for")
    return _CODINGS[name]


def entity_tag(field: str | None) -> ETag | None:
    """The entity tag if it is valid (RFC 9110 8.8.3) and can be sent back."""
    if field is None or len(field) > ETAG_MAX or not _ETAG.fullmatch(field):
        return None
    return ETag(field)


def retry_after(field: str | None, *, now: float) -> float | None:
    """Seconds to wait (RFC 9110 10.2.3), 0 to RETRY_AFTER_MAX; None if absent or malformed. ``now`` is the
    wall clock, since one of the forms is a date."""
    if field is None:
        return None
    field = field.strip()
    if field.isascii() and field.isdigit():
        seconds = float(field[:10])
    else:
        try:
            date = email.utils.parsedate_to_datetime(field)
        except (ValueError, OverflowError):
            return None
        if date.tzinfo is None:  # "-0000", which an HTTP-date never has (RFC 9110 5.6.7)
            return None
        seconds = date.timestamp() - now
    return min(max(seconds, 0.0), RETRY_AFTER_MAX)


def status_failure(status: int, wait: float | None = None) -> Failure:
    """The failure that a status means. ``wait``: seconds the backend asks for."""
    cause = _cause(status, wait)
    told_wait = wait if cause in (Cause.THROTTLED, Cause.SERVER_ERROR) else None
    return Failure(cause, f"answered {status}", told_wait, status)


def _cause(status: int, wait: float | None) -> Cause:
    if status in _CAUSES:
        return _CAUSES[status]
    if status == 503 and wait is not None:
        return Cause.THROTTLED
    if 500 <= status <= 599:
        return Cause.SERVER_ERROR
    if 300 <= status <= 399 and status != 304:
        return Cause.REDIRECTED
    return Cause.UNEXPECTED_STATUS

"""Answers to requests that the parser or ``dispatch`` refuses, and to internal errors."""

from __future__ import annotations

import re
from typing import Final

from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import (
    BadHttpMethod,
    HttpProcessingError,
    InvalidHeader,
    InvalidURLError,
    LineTooLong,
)

from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal
from specmux_aggregator.server.input_limits import HEAD_MAX, HeadTooLarge

LINE_MAX: Final = 8190  # bytes of a request line, and of one header field
PATH_SHOWN: Final = 120  # characters of a path in a log line
_PATH_TOKEN: Final = re.compile(r"(/schemas/token/)[^/]+")

TOO_LONG: Final = refusal(400, "BadRequest", f"a line of the request's head is longer than {LINE_MAX} bytes")
TOO_LARGE: Final = refusal(
    431, "RequestHeaderFieldsTooLarge", f"the request's head is larger than {HEAD_MAX} bytes"
)
BAD_TARGET: Final = refusal(400, "BadRequest", "the request target is malformed")
BAD_METHOD: Final = refusal(400, "BadRequest", "the request's method is unknown")
BAD_HEADER: Final = refusal(400, "BadRequest", "a header field of the request is malformed")
MALFORMED: Final = refusal(400, "BadRequest", "the request is malformed")
FAILED: Final = refusal(500, "InternalError", "the request could not be answered")

_WORDS: Final = (
    (505, "HTTPVersionNotSupported", "this server speaks HTTP/1.0 and HTTP/1.1"),
    (400, "BadRequest", "the Host field is not a host"),
    (417, "ExpectationFailed", "only 100-continue can be expected"),
    (400, "BadRequest", "the Transfer-Encoding field names no coding"),
)
BAD_VERSION, BAD_HOST, BAD_EXPECTATION, BAD_FRAMING = (refusal(*words) for words in _WORDS)

REFUSED_HEADS: Final = {
    answer: refusal(*words, is_head=True)
    for answer, words in zip((BAD_VERSION, BAD_HOST, BAD_EXPECTATION, BAD_FRAMING), _WORDS, strict=True)
}
"""The same answers for HEAD, without a body."""

REFUSALS: Final = frozenset({*REFUSED_HEADS, *REFUSED_HEADS.values()})


class NotHTTP(HttpProcessingError):
    """A request of another protocol that looks like HTTP (RTSP, ICE)."""

    code = 505


def answer_to(exc: BaseException | None) -> PreparedAnswer:
    """The answer to an exception of the parser."""
    match exc:
        case HeadTooLarge():
            return TOO_LARGE
        case NotHTTP():
            return BAD_VERSION
        case LineTooLong():
            return TOO_LONG
        case BadHttpMethod():
            return BAD_METHOD
        case InvalidURLError():
            return BAD_TARGET
        case InvalidHeader():
            return BAD_HEADER
    return MALFORMED


def path_of(message: RawRequestMessage) -> str:
    """The path of a request for a log line: printable ASCII, bounded, without query and token."""
    path = _PATH_TOKEN.sub(r"\1…", message.path.partition("?")[0])
    shown = ascii(path[:PATH_SHOWN])[1:-1]
    return shown if len(path) <= PATH_SHOWN else f"{shown}… ({len(path)} characters)"

"""Turn a parsed HTTP message into the service's request, and refuse messages that must not reach it. Pure.

aiohttp's parser (llhttp) has already refused broken framing and non-ASCII targets. What remains to refuse is
well framed: an unsupported version, an invalid Host, an unknown expectation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.hdrs import ACCEPT, ACCEPT_ENCODING, EXPECT, HOST, IF_MATCH, IF_NONE_MATCH, TRANSFER_ENCODING
from aiohttp.http import RawRequestMessage
from multidict import istr

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal

AVAILABLE_DICTIONARY: Final = istr("Available-Dictionary")

VERSIONS: Final = (HttpVersion11, HttpVersion10)

URI_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~!$&'()*+,;=%]*)(?::[0-9]*)?\Z")
"""uri-host [":" port] (RFC 9110 7.2); empty is allowed."""

_WORDS: Final = (
    (505, "HTTPVersionNotSupported", "this server speaks HTTP/1.0 and HTTP/1.1"),
    (400, "BadRequest", "the Host field is not a host"),
    (417, "ExpectationFailed", "only 100-continue can be expected"),
    (400, "BadRequest", "the Transfer-Encoding field names no coding"),
)
BAD_VERSION, BAD_HOST, BAD_EXPECTATION, BAD_FRAMING = (refusal(*words) for words in _WORDS)

_HEADS: Final = {
    answer: refusal(*words, is_head=True)
    for answer, words in zip((BAD_VERSION, BAD_HOST, BAD_EXPECTATION, BAD_FRAMING), _WORDS, strict=True)
}
"""The same answers for HEAD, without a body."""

REFUSALS: Final = frozenset({*_HEADS, *_HEADS.values()})


def refuse_message(message: RawRequestMessage) -> PreparedAnswer | None:
    """The answer to a message that must not reach the service; None for all others."""
    found = _find_refusal(message)
    return _HEADS[found] if found is not None and message.method == "HEAD" else found


def _find_refusal(message: RawRequestMessage) -> PreparedAnswer | None:
    headers = message.headers
    if message.version not in VERSIONS:
        return BAD_VERSION
    if TRANSFER_ENCODING in headers and not headers[TRANSFER_ENCODING].strip():
        # llhttp assumes no body and would parse what follows as a request (RFC 9112 6.3: 400, and close).
        return BAD_FRAMING
    if not is_host(headers.get(HOST, "")):
        return BAD_HOST
    # 100 (Continue) is not sent here: no request body is needed, so the final answer can be sent at once. An
    # expectation in HTTP/1.0 is ignored (RFC 9110 10.1.1).
    expected = headers.getall(EXPECT, ()) if message.version == HttpVersion11 else ()
    if expected and any(value.lower() != "100-continue" for value in expected):
        return BAD_EXPECTATION
    return None


def request_of(message: RawRequestMessage) -> Request:
    """The fields as received, repeated ones joined (RFC 9110 5.3)."""
    getall = message.headers.getall
    path, _, query = target_of(message).partition("?")
    return Request(
        message.method,
        path,
        query,
        _join_values(getall(ACCEPT, None)),
        _join_values(getall(ACCEPT_ENCODING, None)),
        _join_values(getall(IF_NONE_MATCH, None)),
        _join_values(getall(IF_MATCH, None)),
        _dictionary_of(message) if AVAILABLE_DICTIONARY in message.headers else None,
    )


def _dictionary_of(message: RawRequestMessage) -> str | None:
    """The dictionary that a request names. None of a page of another origin, to which the length of an answer
    must tell nothing about the document (RFC 9842 9.3.3)."""
    getall = message.headers.getall
    if message.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return None
    named = _join_values(getall("Dictionary-ID", None)) or ""
    return f"{_join_values(getall(AVAILABLE_DICTIONARY))} {named}"


def target_of(message: RawRequestMessage) -> str:
    """Path and query as received, without the origin of an absolute-form target."""
    target = message.path
    if target.startswith("/"):
        return target
    # RFC 9112 3.2.2 requires the absolute form to be understood. "*" and an authority contain no path.
    url = message.url
    return f"{url.raw_path}?{url.raw_query_string}" if url.absolute and url.scheme else target


@lru_cache(maxsize=256)
def is_host(value: str) -> bool:
    return len(value) <= 255 + 6 and URI_HOST.match(value) is not None


def _join_values(values: list[str] | None) -> str | None:
    if values is None:
        return None
    value = values[0] if len(values) == 1 else ", ".join(values)
    if value.isascii():
        return value
    # Bytes that are not UTF-8 arrive as surrogates, which cannot be encoded. Values are opaque bytes (RFC
    # 9110 5.5), so each becomes one character.
    return value.encode("utf-8", "surrogateescape").decode("latin-1")

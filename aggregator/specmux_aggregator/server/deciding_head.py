"""The part of a request head that decides its answer, as bytes, without parsing. Pure.

Requests of one client mostly differ in fields that nothing here reads: an audit id, a trace id, an address
that a load balancer adds. Without such fields their heads are equal, and so are their answers.

Why this is safe: only whole lines are removed, each a field name that nothing reads, a colon, and visible
ASCII. The remainder is compared byte by byte with the remainder of a head that the parser accepted. The two
heads differ only in lines that the parser accepts wherever they stand, within its limit on their number, so
it would accept the other head as well, with the same meaning. Anything irregular stays in the compared part,
and no such head was accepted before.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

from specmux_aggregator.server.input_limits import END_OF_HEAD

HEAD_MAX: Final = 4096
"""Bytes of the largest head that is examined."""

LINES_MAX: Final = 64
"""Lines of the largest head that is examined: half of what the parser accepts."""

DECIDING: Final = frozenset(
    {
        # Fields that an answer depends on: http.messages.Request, server.dispatch, and permission.
        "accept",
        "accept-encoding",
        "authorization",
        "available-dictionary",
        "dictionary-id",
        "expect",
        "host",
        "if-match",
        "if-none-match",
        "last-event-id",
        "sec-fetch-site",
        # Fields that frame a message or end a connection: RFC 9112, llhttp.
        "connection",
        "content-length",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # Fields that aiohttp refuses, always or when repeated.
        "content-encoding",
        "content-location",
        "content-range",
        "content-type",
        "etag",
        "max-forwards",
        "sec-websocket-key1",
        "server",
        "user-agent",
    }
)
"""Fields that are kept, in lower case."""


def deciding_part(data: bytes) -> bytes | None:
    """The head without fields that decide nothing; None if ``data`` is not one whole head, or too large."""
    if len(data) > HEAD_MAX or data.find(END_OF_HEAD) != len(data) - 4 or data.count(b"\n") > LINES_MAX:
        return None
    return _ORDINARY.sub(b"", data)


def _any_of(words: list[str]) -> str:
    """A case-insensitive pattern for these words that branches letter by letter."""
    branches = []
    for letter, group in groupby(sorted(words), key=lambda word: word[:1]):
        rest = [word[1:] for word in group]
        here = f"[{letter}{letter.upper()}]" if letter.isalpha() else re.escape(letter)
        longer = _any_of([word for word in rest if word])
        if longer:
            here += f"(?:{longer}){'?' if '' in rest else ''}"
        branches.append(here)
    return "|".join(branches)


_ORDINARY: Final = re.compile(
    rb"\r\n(?!(?:" + _any_of(sorted(DECIDING)).encode() + rb"):)"
    rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}:[ \t]*[\x21-\x7e][\t\x20-\x7e]{0,2000}(?=\r\n)"
)

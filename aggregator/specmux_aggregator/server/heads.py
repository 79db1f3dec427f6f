"""What of a request's head decides its answer, as bytes, without parsing. Pure.

Requests of one client mostly differ in a field that nobody here reads: an audit id, a trace, the address that
a balancer saw. Without such fields their heads are equal, and so are their answers.

Why that is safe. Only whole lines go, each a name that nobody reads, a colon, and visible ASCII. What is left
is compared byte by byte with what was left of a head that the parser took. The two differ in lines alone that
the parser takes wherever they stand, as long as they are not too many, so it would take the other one as well
and make the same of it. Whatever is bent in some way stays in what is compared, and no such head was taken.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

from specmux_aggregator.server.held import END_OF_HEAD

HEAD_MAX: Final = 4096
"""Bytes of a head that is looked at."""

LINES_MAX: Final = 64
"""Lines of it: half of what the parser takes."""

DECIDING: Final = frozenset(
    {
        # What an answer depends on: http.messages.Request, server.dispatch, and the permission to ask.
        "accept",
        "accept-encoding",
        "authorization",
        "expect",
        "host",
        "if-match",
        "if-none-match",
        "last-event-id",
        # What frames a message and ends a connection: RFC 9112, llhttp.
        "connection",
        "content-length",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # What aiohttp refuses: some at once, others when they come twice.
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
"""Fields that stay, in lower case."""


def deciding_part(data: bytes) -> bytes | None:
    """A head without the fields that decide nothing; None for what is not one whole head, or a large one."""
    if len(data) > HEAD_MAX or data.find(END_OF_HEAD) != len(data) - 4 or data.count(b"\n") > LINES_MAX:
        return None
    return _ORDINARY.sub(b"", data)


def _any_of(words: list[str]) -> str:
    """A pattern for these words in any case that decides by one letter after the other."""
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

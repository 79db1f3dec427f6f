"""Length of an answer as its head tells it, where the head is a usual one. Pure."""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = re.compile(rb"HTTP/1\.[01] 200 [^\r\n]*\r\n((?:[^\r\n]+\r\n){1,64})\r\n")
_LENGTH: Final = re.compile(rb"^content-length:[ \t]*([0-9]{1,18})[ \t]*\r$", re.MULTILINE)
_HEAD_MAX: Final = 8 * 1024
"""Bytes of a head that is looked into."""


def told_length(data: bytes) -> int:
    """Bytes of the answer that begins so, where its head is here and tells them; 0 where anything is unusual.

    The parser decides where a body ends: a server that makes it see another end than this gets one read
    parsed in one piece.
    """
    head = _HEAD.match(data, 0, _HEAD_MAX)
    if head is None:
        return 0
    fields = head[1].lower()
    lengths = _LENGTH.findall(fields)
    if len(lengths) != 1 or b"transfer-encoding" in fields:
        return 0
    return head.end() + int(lengths[0])

"""The length of an answer as stated by a common form of head. Pure."""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = re.compile(rb"HTTP/1\.[01] 200 [^\r\n]*\r\n((?:[^\r\n]+\r\n){1,64})\r\n")
_LENGTH: Final = re.compile(rb"^content-length:[ \t]*([0-9]{1,18})[ \t]*\r$", re.MULTILINE)
_HEAD_MAX: Final = 8 * 1024
"""Bytes of the largest head that is examined."""


def told_length(data: bytes) -> int:
    """Bytes of the answer that starts with ``data``, if its head is complete and states them; 0 if anything
    is unusual.

    The parser decides where a body ends: if a server makes it differ from this result, one read is parsed in
    one piece.
    """
    head = _HEAD.match(data, 0, _HEAD_MAX)
    if head is None:
        return 0
    fields = head[1].lower()
    lengths = _LENGTH.findall(fields)
    if len(lengths) != 1 or b"transfer-encoding" in fields:
        return 0
    return head.end() + int(lengths[0])

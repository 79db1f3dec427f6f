"""The syntax of discovery keys: relative URL paths that need no encoding. Pure."""

from __future__ import annotations

import re
from typing import Final

KEY_MAX: Final = 512
"""Most characters of a discovery key."""

# RFC 3986 3.3 pchar without percent-encoding.
_SEGMENT: Final = r"[A-Za-z0-9._~!$&'()*+,;=:@-]+"
_KEY: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_DOT_SEGMENTS: Final = frozenset({".", ".."})


def key_fault(key: str) -> str | None:
    """The fault of a discovery key; None if it is valid."""
    if len(key) > KEY_MAX:
        return f"is longer than {KEY_MAX} characters"
    if not _KEY.fullmatch(key):
        return "is not a relative URL path"
    if not _DOT_SEGMENTS.isdisjoint(key.split("/")):
        return "holds a dot segment"
    return None

"""What a discovery key may be: a relative URL path that stands in a URL as it is. Pure."""

from __future__ import annotations

import re
from typing import Final

KEY_MAX: Final = 512
"""Characters of a discovery key."""

# RFC 3986 3.3 pchar without percent-encoding.
_SEGMENT: Final = r"[A-Za-z0-9._~!$&'()*+,;=:@-]+"
_KEY: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_DOT_SEGMENTS: Final = frozenset({".", ".."})


def key_fault(key: str) -> str | None:
    """What is wrong with a discovery key; None: nothing."""
    if len(key) > KEY_MAX:
        return f"is longer than {KEY_MAX} characters"
    if not _KEY.fullmatch(key):
        return "is not a relative URL path"
    if not _DOT_SEGMENTS.isdisjoint(key.split("/")):
        return "holds a dot segment"
    return None

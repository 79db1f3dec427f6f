"""Serialize request heads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_TARGET: Final = re.compile(r"/[!-\"$-~]*")
"""No white space, control characters or fragment."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE: Final = re.compile(r"[\r\n\0]")


def is_sendable(target: str) -> bool:
    """Whether it is valid in a request line without encoding."""
    return _TARGET.fullmatch(target) is not None


def head_of(line: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """A request without a body. ``line``: method, valid target and version. Raises ValueError for a field
    that contains a line break."""
    lines = [line]
    for name, value in fields:
        if _NAME.fullmatch(name) is None or _UNSENDABLE.search(value) is not None:
            raise ValueError("a header field has a character that cannot be sent")
        lines.append(f"{name}: {value}")
    lines.append("\r\n")
    return "\r\n".join(lines).encode()

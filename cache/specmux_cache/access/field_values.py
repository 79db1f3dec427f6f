"""What may stand in header fields that we write, and whether a host is this machine. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_bearer_value(text: str) -> bool:
    """Whether a token can be sent. RFC 6750 2.1 is narrower; what must not pass is whatever would break the
    header field."""
    return bool(text) and all("\x20" < character < "\x7f" for character in text)


def is_loopback(host: str | None) -> bool:
    """Whether what goes to the host stays on this machine. Names but localhost are not looked up."""
    name = (host or "").rstrip(".")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def checked_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """A copy. Raises ValueError, which repeats no value, for a field that RFC 9110 5 has no form for."""
    for name, value in fields.items():
        if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise ValueError(f"the header field {name!r} cannot be sent: a name is a token, a value one line")
    return dict(fields)

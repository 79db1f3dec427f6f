"""Check values of header fields, and whether a host is this machine. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from specmux_converters.lazy.patterns import pattern

_TOKEN: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = pattern(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_bearer_value(text: str) -> bool:
    """Whether a token can be sent. More permissive than RFC 6750 2.1; excludes whatever would break the
    header field."""
    return bool(text) and all("\x20" < character < "\x7f" for character in text)


def is_loopback(host: str | None) -> bool:
    """Whether traffic to the host stays on this machine. Names other than localhost are not resolved."""
    name = (host or "").rstrip(".")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """A copy. Raises ValueError, which quotes no value, for a field that RFC 9110 5 does not allow."""
    for name, value in fields.items():
        if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise ValueError(f"the header field {name!r} cannot be sent: a name is a token, a value one line")
    return dict(fields)

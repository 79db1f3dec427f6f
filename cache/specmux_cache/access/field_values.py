"""What may stand in header fields that we write, and whether a host is this machine. Pure."""

from __future__ import annotations

import ipaddress


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

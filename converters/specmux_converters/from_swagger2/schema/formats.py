"""Check whether a value has the form that its ``format`` names.

Covers the formats of OpenAPI 3.0 (4.4) and JSON Schema (Wright-00, section 7.3) that validators check without
further libraries. Any other name is a hint that every value satisfies.
"""

from __future__ import annotations

import re
from base64 import b64decode
from calendar import monthrange
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(
    r"[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def has_format(value: Any, name: Any) -> bool:
    known = FORMATS.get(name) if name.__class__ is str else None
    if known is None or value.__class__ is not known[0]:
        return True
    try:
        return known[1](value) is not False
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    """RFC 3339, full-date. Raises ValueError for a nonexistent date."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= day <= monthrange(year, month)[1]


def _is_date_time(text: str) -> bool:
    return _is_date(text[:10]) and _TIME.fullmatch(text, 10) is not None


FORMATS: Final[Mapping[str, tuple[type, Callable[[Any], object]]]] = {
    "int32": (int, lambda number: -(2**31) <= number < 2**31),
    "int64": (int, lambda number: -(2**63) <= number < 2**63),
    "byte": (str, lambda text: b64decode(text.encode("ascii"), validate=True)),
    "date": (str, _is_date),
    "date-time": (str, _is_date_time),
    "email": (str, lambda text: "@" in text),
    "ipv4": (str, IPv4Address),
    "ipv6": (str, IPv6Address),
    "uuid": (str, lambda text: _UUID.fullmatch(text) is not None),
}
"""The type to which a format applies, and a function that returns False or raises ValueError for an invalid
value."""

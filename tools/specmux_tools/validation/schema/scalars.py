"""Texts that Kubernetes' own types parse: quantities, times, base64. Functions return the fault, or None.

Sources: apimachinery pkg/api/resource/quantity.go, pkg/apis/meta/v1/{time,micro_time}.go, Go's time.Parse and
encoding/base64.
"""

from __future__ import annotations

import re
from calendar import monthrange
from typing import Final

from specmux_converters.go.text import INT64_MAX
from specmux_converters.lazy.patterns import pattern

QUANTITY_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_QUANTITY: Final = pattern(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_CONTROL: Final = pattern("[\x00-\x1f]")
_LEAST_EXPONENT: Final = -9
_DECIMAL: Final = {
    suffix: 3 * (index - 3) for index, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))
}
_BINARY: Final = {suffix: 10 * index for index, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_PEBI: Final = _BINARY["Pi"]
_EXPONENT: Final = pattern("[eE]([-+]?)([0-9]+)")

_LEAP_YEAR: Final = 2000
"""Stands for the year 0, a leap year that Python lacks."""

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_GOOD_TIME: Final = pattern(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{6})?Z"
)
"""Matches most times; others are parsed part by part."""

_TWO_DIGITS: Final = pattern("[0-9]{2}")
_DASH: Final = pattern("-")
_COLON: Final = pattern(":")
_DATE_AND_CLOCK: Final = (
    ("2006", pattern("[0-9]{4}"), "", 0, 0),
    ("-", _DASH, "", 0, 0),
    ("01", _TWO_DIGITS, "month", 1, 12),
    ("-", _DASH, "", 0, 0),
    ("02", _TWO_DIGITS, "", 0, 0),
    ("T", pattern("T"), "", 0, 0),
    ("15", pattern("[0-9]{2}|[0-9](?=[^0-9])"), "hour", 0, 23),  # a single digit: Go issue 54580
    (":", _COLON, "", 0, 0),
    ("04", _TWO_DIGITS, "minute", 0, 59),
    (":", _COLON, "", 0, 0),
    ("05", _TWO_DIGITS, "second", 0, 59),
)
"""Elements of a layout, their texts, and the name and range of those whose range is checked at once."""
_FRACTIONS: Final = {
    RFC3339: ("", pattern("(?:[.,][0-9]+)?"), "", 0, 0),
    RFC3339_MICRO: (".000000", pattern("[.,][0-9]{6}"), "", 0, 0),
}
_ZONE: Final = ("Z07:00", pattern("Z|[+-]([0-9]{2}):([0-9]{2})"), "", 0, 0)

_BASE64: Final = pattern(rb"[A-Za-z0-9+/]*")
_GOOD_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class BadQuantity(Exception):
    """In Go's words."""


def split_quantity(text: str) -> tuple[str, str, str, int, int]:
    """Sign, digits before and behind the point, and base and exponent of the suffix. Raises BadQuantity."""
    match = _QUANTITY.fullmatch(text)
    if not text or match is None:
        raise BadQuantity(QUANTITY_FORMAT)
    suffix = match[4]
    base, exponent = (2, _BINARY[suffix]) if suffix in _BINARY else (10, _DECIMAL.get(suffix))
    if exponent is None:
        written = _EXPONENT.fullmatch(suffix)
        # int() rejects thousands of digits; beyond 64 bits the value does not matter.
        exponent = int(f"{written[1]}0{written[2].lstrip('0')[:20]}") if written else INT64_MAX + 1
        if not -INT64_MAX - 1 <= exponent <= INT64_MAX:
            raise BadQuantity("unable to parse quantity's suffix")
    return match[1], match[2], match[3] or "", base, exponent


def quantity_fault(text: str) -> str | None:
    # Quantity parses the raw JSON text, in which a control character is an escape sequence.
    try:
        _, whole, fraction, base, exponent = split_quantity(text if _CONTROL.search(text) else text.strip())
    except BadQuantity as bad:
        return str(bad)
    # Without digits the value is zero, except for suffixes that bypass Go's fast path.
    is_slow = exponent >= _PEBI if base == 2 else exponent < _LEAST_EXPONENT
    return "unable to parse numeric part of quantity" if is_slow and not (whole or fraction) else None


def time_fault(text: str, layout: str = RFC3339) -> str | None:
    """Checks a metav1.Time or, with RFC3339_MICRO, a metav1.MicroTime, as time.Parse does: the first element
    of the layout that does not match, or is out of range, is the fault."""
    good = _GOOD_TIME.fullmatch(text)
    if good is not None and (good[1] is not None or layout is RFC3339):
        return None
    parsing = f"parsing time {_time_quoted(text)}"
    at, found = 0, []
    for element, shape, name, least, most in (*_DATE_AND_CLOCK, _FRACTIONS[layout], _ZONE):
        match = shape.match(text, at)
        if match is None:
            left = _time_quoted(text[at:])
            return f"{parsing} as {_time_quoted(layout)}: cannot parse {left} as {_time_quoted(element)}"
        at = match.end()
        found.append(match)
        if name and not least <= int(match[0]) <= most:
            return f"{parsing}: {name} out of range"
    zone = found[-1]
    for number, name, most in ((zone[1], "hour", 24), (zone[2], "minute", 60)):
        if number and int(number) > most:
            return f"{parsing}: time zone offset {name} out of range"
    if at < len(text):
        return f"{parsing}: extra text: {_time_quoted(text[at:])}"
    year, month, day = (int(found[index][0]) for index in (0, 2, 4))
    return None if date_is_real(year, month, day) else f"{parsing}: day out of range"


def base64_fault(text: str) -> str | None:
    """Checks standard base64 with padding; line breaks are skipped."""
    if _GOOD_BASE64.fullmatch(text):
        return None
    position = _corrupt_byte(text.encode("utf-8", "surrogatepass"))
    return None if position is None else f"illegal base64 data at input byte {position}"


def _corrupt_byte(data: bytes) -> int | None:
    """The offset that encoding/base64 reports (decodeQuantum)."""
    places = [place for place, byte in enumerate(data) if byte not in b"\r\n"]
    text = bytes(data[place] for place in places)
    match = _BASE64.match(text)
    end = match.end() if match else 0
    count = end % 4
    if end == len(text):
        return len(data) - count if count else None
    if text[end] != ord("=") or count < 2:
        return places[end]
    end += 1
    if count == 2:
        if end == len(text):
            return len(data)
        if text[end] != ord("="):
            return places[end] - 1
        end += 1
    return places[end] if end < len(text) else None


def _time_quoted(text: str) -> str:
    """Quotes like Go's package time, byte by byte."""
    shown = (
        f"\\x{byte:02x}"
        if byte >= 0x80 or byte < 0x20
        else f"\\{chr(byte)}"
        if chr(byte) in '"\\'
        else chr(byte)
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return f'"{"".join(shown)}"'


def date_is_real(year: int, month: int, day: int) -> bool:
    """Whether the date exists in the proleptic Gregorian calendar, year 0 included."""
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or _LEAP_YEAR, month)[1]

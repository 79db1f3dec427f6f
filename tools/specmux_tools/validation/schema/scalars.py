"""Texts that Kubernetes' own types parse: quantities, times, base64. Functions return the fault, or None.

Sources: apimachinery pkg/api/resource/quantity.go, pkg/apis/meta/v1/{time,micro_time}.go, Go's time.Parse and
encoding/base64.
"""

from __future__ import annotations

import re
from calendar import monthrange
from typing import Final

from specmux_converters.lazy.patterns import pattern

QUANTITY_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_QUANTITY: Final = pattern(r"[+-]?[0-9]*+(?:\.[0-9]*+)?([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_CONTROL: Final = pattern("[\x00-\x1f]")
_DIGIT: Final = pattern("[0-9]")
_LEAST_EXPONENT: Final = -9
_SUFFIXES: Final = frozenset(
    ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
)
_EXPONENT: Final = pattern(r"[eE][-+]?[0-9]+")

_LEAP_YEAR: Final = 2000
"""Stands for the year 0, a leap year that Python lacks."""

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_GOOD_TIME: Final = pattern(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{6})?Z"
)
"""Matches most times; others are parsed part by part."""

_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_GOOD_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def quantity_fault(text: str) -> str | None:
    # Quantity parses the raw JSON text, in which a control character is an escape sequence.
    text = text if _CONTROL.search(text) else text.strip()
    if not text:
        return QUANTITY_FORMAT
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return QUANTITY_FORMAT
    suffix = match[1]
    exponent = _exponent(suffix)
    if suffix not in _SUFFIXES and not (_EXPONENT.fullmatch(suffix) and -(2**63) <= exponent < 2**63):
        return "unable to parse quantity's suffix"
    # Without digits the value is zero, except for suffixes that bypass Go's fast path.
    has_digits = bool(_DIGIT.search(text, 0, len(text) - len(suffix)))
    if not has_digits and (suffix in ("Pi", "Ei") or exponent < _LEAST_EXPONENT):
        return "unable to parse numeric part of quantity"
    return None


def _exponent(suffix: str) -> int:
    if not _EXPONENT.fullmatch(suffix):
        return 0
    digits = suffix.lstrip("eE+-").lstrip("0")
    # int() rejects thousands of digits; beyond 64 bits the value does not matter.
    exponent = int(digits[:20] or 0)
    return -exponent if suffix[1] == "-" else exponent


def time_fault(text: str, layout: str = RFC3339) -> str | None:
    """Checks a metav1.Time or, with RFC3339_MICRO, a metav1.MicroTime."""
    match = _GOOD_TIME.fullmatch(text)
    if match is not None and (match[1] is not None or layout is RFC3339):
        return None
    return _TimeReader(text, layout).fault()


def base64_fault(text: str) -> str | None:
    """Checks standard base64 with padding; line breaks are skipped."""
    if _GOOD_BASE64.fullmatch(text):
        return None
    position = _corrupt_byte(text.encode("utf-8", "surrogatepass"))
    return None if position is None else f"illegal base64 data at input byte {position}"


def _corrupt_byte(data: bytes) -> int | None:
    """The offset that encoding/base64 reports (decodeQuantum)."""
    at, end = 0, len(data)
    while at < end:
        count = 0
        while count < 4:
            if at == end:
                return None if count == 0 else at - count
            byte = data[at]
            at += 1
            if byte in b"\r\n":
                continue
            if byte in _BASE64:
                count += 1
                continue
            if byte != ord("="):
                return at - 1
            return _padding_fault(data, at, count)
    return None


def _padding_fault(data: bytes, at: int, count: int) -> int | None:
    """``at`` is the index after the first ``=``, which follows ``count`` characters of its group of four."""
    if count < 2:
        return at - 1
    if count == 2:
        at = _after_breaks(data, at)
        if at == len(data):
            return len(data)
        if data[at] != ord("="):
            return at - 1
        at += 1
    at = _after_breaks(data, at)
    return at if at < len(data) else None


def _after_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b"\r\n":
        at += 1
    return at


class _TimeReader:
    """time.Parse for the two layouts of metav1: the remaining text and the first part that does not match."""

    def __init__(self, text: str, layout: str) -> None:
        self._text = text
        self._layout = layout
        self._left = text
        self._range = ""

    def fault(self) -> str | None:
        year = self._digits("2006", 4)
        if year is None or not self._literal("-"):
            return self._failed
        month = self._digits("01", 2) or 0
        if self._failed or not self._in("month", 1, month, 12) or not self._literal("-"):
            return self._failed
        day = self._digits("02", 2)
        if day is None or not self._literal("T"):
            return self._failed
        return self._clock(year, month, day)

    _failed: str | None = None

    def _clock(self, year: int, month: int, day: int) -> str | None:
        for element, name, most, follows in (
            ("15", "hour", 23, ":"),
            ("04", "minute", 59, ":"),
            ("05", "second", 59, ""),
        ):
            value = self._hour() if element == "15" else self._digits(element, 2)
            if value is None or not self._in(name, 0, value, most) or not self._literal(follows):
                return self._failed
        if not self._fraction() or not self._zone():
            return self._failed
        if self._left:
            return f"parsing time {_time_quoted(self._text)}: extra text: {_time_quoted(self._left)}"
        if not date_is_real(year, month, day):
            return f"parsing time {_time_quoted(self._text)}: day out of range"
        return None

    def _hour(self) -> int | None:
        """A single digit is accepted here (Go issue 54580)."""
        if len(self._left) > 1 and _is_digit(self._left[0]) and not _is_digit(self._left[1]):
            value, self._left = int(self._left[0]), self._left[1:]
            return value
        return self._digits("15", 2)

    def _digits(self, element: str, count: int) -> int | None:
        part = self._left[:count]
        if len(part) < count or not all(map(_is_digit, part)):
            self._fail(element)
            return None
        self._left = self._left[count:]
        return int(part)

    def _literal(self, mark: str) -> bool:
        if not mark or self._left.startswith(mark):
            self._left = self._left[len(mark) :]
            return True
        self._fail(mark)
        return False

    def _in(self, name: str, least: int, value: int, most: int) -> bool:
        if least <= value <= most:
            return True
        self._failed = f"parsing time {_time_quoted(self._text)}: {name} out of range"
        return False

    def _fraction(self) -> bool:
        if self._layout is RFC3339_MICRO:
            match = re.match(r"[.,][0-9]{6}", self._left)
            if match is None:
                self._fail(".000000")
                return False
        else:
            match = re.match(r"[.,][0-9]+", self._left)
        self._left = self._left[match.end() :] if match else self._left
        return True

    def _zone(self) -> bool:
        if self._left.startswith("Z"):
            self._left = self._left[1:]
            return True
        match = re.match(r"[+-]([0-9]{2}):([0-9]{2})", self._left)
        if match is None:
            self._fail("Z07:00")
            return False
        if int(match[1]) > 24:
            return self._in("time zone offset hour", 0, int(match[1]), 24)
        if int(match[2]) > 60:
            return self._in("time zone offset minute", 0, int(match[2]), 60)
        self._left = self._left[6:]
        return True

    def _fail(self, element: str) -> None:
        self._failed = (
            f"parsing time {_time_quoted(self._text)} as {_time_quoted(self._layout)}: "
            f"cannot parse {_time_quoted(self._left)} as {_time_quoted(element)}"
        )


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


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"

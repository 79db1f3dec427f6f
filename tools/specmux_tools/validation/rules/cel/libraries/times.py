"""Timestamps and durations: reading, writing, parts of them (Go's time; cel-go, common/types/timestamp.go).

Days are counted by hand: this package knows no clock and no datetime but for time zones by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import DURATION, INT, STRING, TIMESTAMP
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    NANOS,
    CelError,
    Duration,
    Timestamp,
    bounded_int,
)
from specmux_tools.validation.schema.scalars import time_fault

_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))"
)
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_NUMBER: Final = re.compile(r"([+-]?)([0-9]+)", re.ASCII)
_DAY: Final = 86_400
_BEFORE_MONTH: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 (Hinnant's algorithm, which counts from March)."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day


def read_timestamp(text: str) -> Timestamp | None:
    """RFC 3339, as Go's time.Parse reads it; None for what it refuses."""
    return None if time_fault(text) is not None else any_timestamp(text)


def any_timestamp(text: str) -> Timestamp | None:
    """A time whose parts are known to be in range."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(each) for each in match.groups()[:6])
    offset = 0
    if match[8]:
        offset = (int(match[9]) * 60 + int(match[10])) * 60
        offset = -offset if match[8] == "-" else offset
    seconds = days_from_civil(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - offset
    return Timestamp(seconds * NANOS + int((match[7] or "0")[:9].ljust(9, "0")), offset)


def timestamp_text(time: Timestamp) -> str:
    """time.RFC3339Nano."""
    days, seconds = divmod(time.seconds + time.offset, _DAY)
    year, month, day = civil_from_days(days)
    fraction = f".{time.nanos % NANOS:09d}".rstrip("0").rstrip(".")
    zone = "Z"
    if time.offset:
        hours, minutes = divmod(abs(time.offset) // 60, 60)
        zone = f"{'-' if time.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction}{zone}"


def read_duration(text: str) -> int | None:
    """time.ParseDuration, in nanoseconds; None for what it refuses."""
    is_negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        return None
    total = at = 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            return None
        unit = _UNITS[match[3]]
        whole = bounded_int(match[1])
        if whole is None:
            return None
        fraction = (match[2] or "")[:18]
        total += whole * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        if total > INT_MAX + is_negative:
            return None
        at = match.end()
    return -total if is_negative else total


def duration_text(value: Duration) -> str:
    """In seconds, as a float is written without exponent."""
    whole = abs(value.nanos) // NANOS * (-1 if value.nanos < 0 else 1)
    seconds = float(whole) + float(value.nanos - whole * NANOS) / 1e9
    return f"{fixed_text(seconds)}s"


def fixed_text(value: float) -> str:
    """The shortest text without exponent (strconv's 'f', -1)."""
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _offset(time: Timestamp, zone: str) -> int:
    name, colon, minutes = zone.partition(":")
    if not colon:
        from specmux_tools.validation.rules.cel.libraries.time_zones import offset_of

        return offset_of(name, time.seconds)
    numbers = [_atoi(each) for each in (name, minutes)]
    return (numbers[0] * 60 + (-numbers[1] if zone[0] == "-" else numbers[1])) * 60


def _atoi(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise CelError(f"strconv.Atoi: parsing {quote_text(text)}: invalid syntax")
    found = bounded_int(match[2])
    if found is None or found > INT_MAX:
        raise CelError(f"strconv.Atoi: parsing {quote_text(text)}: value out of range")
    return -found if match[1] == "-" else found


def _day_of_year(days: int) -> int:
    year, month, day = civil_from_days(days)
    is_leap = month > 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _BEFORE_MONTH[month - 1] + day - 1 + is_leap


_PARTS: Final[dict[str, tuple[str, Callable[[int, int, int], int]]]] = {
    "getFullYear": ("year", lambda days, _, __: civil_from_days(days)[0]),
    "getMonth": ("month", lambda days, _, __: civil_from_days(days)[1] - 1),
    "getDayOfYear": ("day_of_year", lambda days, _, __: _day_of_year(days)),
    "getDayOfMonth": ("day_of_month", lambda days, _, __: civil_from_days(days)[2] - 1),
    "getDate": ("day_of_month_1_based", lambda days, _, __: civil_from_days(days)[2]),
    "getDayOfWeek": ("day_of_week", lambda days, _, __: (days + 4) % 7),
    "getHours": ("hours", lambda _, seconds, __: seconds // 3600),
    "getMinutes": ("minutes", lambda _, seconds, __: seconds // 60 % 60),
    "getSeconds": ("seconds", lambda _, seconds, __: seconds % 60),
    "getMilliseconds": ("milliseconds", lambda _, __, nanos: nanos // 1_000_000),
}
"""Functions by name: days since 1970, seconds of the day and nanoseconds to the part."""
_OF_DURATION: Final = {
    "getHours": ("hours", 3600 * NANOS),
    "getMinutes": ("minutes", 60 * NANOS),
    "getSeconds": ("seconds", NANOS),
    "getMilliseconds": ("milliseconds", 1_000_000),
}


def _getter(part: Callable[[int, int, int], int]) -> Callable[..., int]:
    def get(time: Timestamp, zone: str = "UTC") -> int:
        offset = 0 if zone in ("UTC", "") else _offset(time, zone)
        days, seconds = divmod(time.seconds + offset, _DAY)
        return part(days, seconds, time.nanos % NANOS)

    return get


def _unit(nanos: int) -> Callable[[Duration], int]:
    def count(value: Duration) -> int:
        whole = abs(value.nanos) // nanos
        return -whole if value.nanos < 0 else whole

    return count


def _overloads(name: str) -> tuple[Overload, ...]:
    part, read = _PARTS[name]
    get: Callable[..., Any] = _getter(read)
    found = [
        member(f"timestamp_to_{part}", (TIMESTAMP,), INT, get),
        member(f"timestamp_to_{part}_with_tz", (TIMESTAMP, STRING), INT, get),
    ]
    if name in _OF_DURATION:
        unit, nanos = _OF_DURATION[name]
        found.append(member(f"duration_to_{unit}", (DURATION,), INT, _unit(nanos)))
    return tuple(found)


TIMES: Final = CelLibrary({name: _overloads(name) for name in _PARTS})

"""Ids of events: the number of the log, then the number within it, as one integer that JavaScript represents
exactly.

So an id of another replica, or of an earlier process, is distinguished from one of this log: numbers of two
logs are not comparable. Numbers within a log have no gaps.
"""

from __future__ import annotations

import secrets
from typing import Final

ID_DIGITS_MAX: Final = 18
BEGINNING: Final = 1
"""An id up to here names no log: every event comes after it."""

_NUMBERS: Final = 10**8
"""Numbers per log."""
_FIRST_LOG: Final = 10**7
_LAST_LOG: Final = 9 * 10**7
"""The last id of the last log is below 2**53."""


def new_base(above: int = 0) -> int:
    """The id before the first one of a new log. ``above``: an id of the log that it continues."""
    first = max(_FIRST_LOG, above // _NUMBERS + 1)
    return (first + secrets.randbelow(max(_LAST_LOG - first, 1))) * _NUMBERS


def base_of(number: int) -> int:
    return number - number % _NUMBERS


def is_named(number: int) -> bool:
    """False for the ids of earlier versions, milliseconds that name no log."""
    return number < _NUMBERS or number >= _FIRST_LOG * _NUMBERS


def read_id(text: str) -> int:
    """Raises ValueError."""
    if not text.isascii() or not text.isdigit() or len(text) > ID_DIGITS_MAX:
        raise ValueError("no id of an event")
    return int(text)

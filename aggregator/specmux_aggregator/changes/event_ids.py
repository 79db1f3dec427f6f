"""Ids of events: the log that counted them, then their number in it, as one integer that JavaScript keeps.

An id of another replica, or of an earlier life of this one, is so told from one that this log gave: numbers
of two logs mean nothing beside each other. A log's numbers have no gaps.
"""

from __future__ import annotations

import secrets
from typing import Final

ID_DIGITS_MAX: Final = 18
BEGINNING: Final = 1
"""An id up to here names no log: all that there is comes after it."""

_NUMBERS: Final = 10**8
"""Of one log."""
_FIRST_LOG: Final = 10**7
_LAST_LOG: Final = 9 * 10**7
"""The last id of the last log is below 2**53."""


def new_base(above: int = 0) -> int:
    """The id before a new log's first. ``above``: an id of the log that it goes on from."""
    first = max(_FIRST_LOG, above // _NUMBERS + 1)
    return (first + secrets.randbelow(max(_LAST_LOG - first, 1))) * _NUMBERS


def base_of(number: int) -> int:
    return number - number % _NUMBERS


def is_named(number: int) -> bool:
    """Earlier versions took a clock's milliseconds, which name no log."""
    return number < _NUMBERS or number >= _FIRST_LOG * _NUMBERS


def read_id(text: str) -> int:
    """Raises ValueError."""
    if not text.isascii() or not text.isdigit() or len(text) > ID_DIGITS_MAX:
        raise ValueError("no id of an event")
    return int(text)

"""Time zones by name, of the machine's database; the one module of this package that knows datetime.

Go reads the same database. It has no clock: the moment is given.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from specmux_tools.validation.rules.cel.values.values import CelError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (
    int((datetime(*day, tzinfo=UTC) - _EPOCH).total_seconds()) for day in ((1, 1, 3), (9999, 12, 29))
)
"""Between them every zone's time is a datetime; beyond, no zone changes."""


def offset_of(name: str, seconds: int) -> int:
    """Seconds east of UTC, at that many seconds since 1970. Raises CelError for a zone that is not known."""
    if name in ("", "UTC", "Local"):
        return 0
    zone = _zone(name)
    if zone is None:
        step = "" if _zone("Etc/UTC") else ": this machine has no database of time zones; install tzdata"
        raise CelError(f"unknown time zone {name}{step}")
    seconds = min(max(seconds, _FIRST), _LAST)
    moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone).utcoffset()
    return 0 if moment is None else int(moment.total_seconds())


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None

"""Which event loop serves: asyncio's own, or uvloop, an extra that is faster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from specmux_aggregator.errors import InvalidConfig

SETTING: Final = "listen.event_loop"

Factory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory(name: str) -> Factory:
    """Factory of the event loop of that name; ``auto`` is asyncio: uvloop closes the sockets of failed TLS
    handshakes twice, and the second close can meet another file.

    Raises InvalidConfig where uvloop is asked for and not installed.
    """
    factory = _uvloop() if name == "uvloop" else None
    if factory is None and name == "uvloop":
        raise InvalidConfig("is not installed: pip install 'specmux[uvloop]'", where=SETTING)
    return asyncio.new_event_loop if factory is None else factory


def running_loop_name() -> str:
    """``asyncio`` or ``uvloop``: which loop this is called on."""
    return "asyncio" if isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop) else "uvloop"


def _uvloop() -> Factory | None:
    try:
        from uvloop import new_event_loop  # an extra, and no platform has to have it
    except ImportError:
        return None
    factory: Factory = new_event_loop
    return factory

"""The trace that a waiting request belongs to (W3C Trace Context): backends asked because of it get its
``traceparent``. Nothing else is read from it, and nothing logs it.

It is bound to the request's own time: a task that the request started and that outlives it, such as the watch
of a new server, belongs to no trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

FIELD: Final = "traceparent"

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class _Trace:
    __slots__ = ("parent",)

    def __init__(self, parent: str) -> None:
        self.parent: str | None = parent


_CURRENT: ContextVar[_Trace | None] = ContextVar("trace", default=None)


def current_parent() -> str | None:
    """The ``traceparent`` of the request that this work is done for."""
    trace = _CURRENT.get()
    return None if trace is None else trace.parent


@contextmanager
def trace_request(values: Sequence[str]) -> Iterator[None]:
    """Within it, backends are asked because of a request with these values of ``traceparent``: none, or
    anything but a single valid one, is no trace."""
    if len(values) != 1 or not _PARENT.fullmatch(values[0]):
        yield
        return
    trace = _Trace(values[0])
    token = _CURRENT.set(trace)
    try:
        yield
    finally:
        trace.parent = None
        _CURRENT.reset(token)

"""Counters of requests: plain numbers, changed in place on the event loop, read by /metrics.

A Prometheus histogram takes a lock and a label lookup per observation, a third of the cost of a prepared
answer. Here the cell of an answer is looked up once and kept with the remembered answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import Final

BOUNDS: Final = (
    0.00001,
    0.000025,
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)
"""Upper bounds of the duration buckets in seconds; one more bucket holds longer durations."""


class Cell:
    """The durations of one (route, format, code), fresh or stale. Writers change it in place: a method call
    would be a twentieth of the cost of a remembered answer."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0


@dataclass(frozen=True, slots=True)
class Durations:
    """The values of a cell at one moment."""

    route: str
    format: str
    code: int
    is_stale: bool
    buckets: tuple[int, ...]
    """One count per bound, not cumulative, and one for longer durations."""
    seconds: float
    """Sum of all durations."""


def _counter(metric: str, help_text: str) -> int:
    """A field that is a counter metric without labels."""
    return field(default=0, metadata={"metric": metric, "help": help_text})


@dataclass(slots=True, kw_only=True)
class RequestCounters:
    """The table of counters: the server adds to them, and /metrics reads them by ``metadata``."""

    in_flight: int = 0
    """Requests whose answer is being prepared."""
    connections: int = 0
    connections_refused: int = 0
    """Connections closed at once because the total limit was reached."""
    connections_refused_by_address: int = 0
    """Connections closed at once because their address had reached its limit."""
    requests_refused: int = _counter(
        "specmux_requests_refused",
        "Requests answered 429: as many as may wait were waiting, or as much was unread as may be.",
    )
    malformed: int = _counter("specmux_malformed_requests", "Requests that were no HTTP we accept.")
    disconnects: int = _counter(
        "specmux_client_disconnects", "Clients that left before their answer was complete."
    )
    header_timeouts: int = _counter(
        "specmux_header_timeouts", "Clients that took too long to send a request."
    )
    write_stalls: int = _counter(
        "specmux_write_stalls", "Clients that were cut off because they read nothing, or too slowly."
    )
    accept_errors: int = _counter(
        "specmux_accept_errors",
        "Tries to take a connection that the kernel refused: too many files are open.",
    )
    body_files_lost: int = _counter(
        "specmux_body_files_lost", "Memory files of bodies whose descriptor something else closed."
    )
    idle_closed: int = _counter(
        "specmux_idle_connections_closed", "Idle connections closed to make room for new ones."
    )
    held_cuts: int = _counter(
        "specmux_held_cuts",
        "Clients that were cut off because they held most of the memory for unanswered requests.",
    )
    at_once: int = _counter(
        "specmux_requests_answered_at_once",
        "Requests answered in the turn of the event loop in which they came.",
    )
    memo_hits: int = _counter("specmux_memo_hits", "Of these, requests recognised without being parsed.")


@dataclass(slots=True, kw_only=True)
class RequestCounts(RequestCounters):
    """All counters at one moment."""

    durations: tuple[Durations, ...]


class RequestStats(RequestCounters):
    """Counters of one server. Only the server may use more than ``snapshot``."""

    __slots__ = ("cells", "in_flight_elsewhere")

    def __init__(self) -> None:
        super().__init__()
        self.cells: defaultdict[tuple[str, str, int, bool], Cell] = defaultdict(Cell)
        """By route, format, code, and whether the answer is stale. Labels never come from clients, so there
        are few."""
        self.in_flight_elsewhere = 0
        """The part of ``in_flight`` that backends answer."""

    def snapshot(self) -> RequestCounts:
        durations = tuple(
            Durations(route, format_, code, is_stale, tuple(cell.buckets), cell.seconds)
            for (route, format_, code, is_stale), cell in sorted(self.cells.items())
        )
        counters = {each.name: getattr(self, each.name) for each in fields(RequestCounters)}
        return RequestCounts(durations=durations, **counters)

"""What the server counts about requests: plain numbers, changed in place on the event loop, read by /metrics.

A Prometheus histogram takes a lock and a label lookup for each observation, which is a third of what a
prepared answer costs. Here an answer's cell is looked up once and kept beside whatever remembers the answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
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
"""Upper bounds of the duration buckets, in seconds; one more bucket holds what is above the last."""


class Cell:
    """The durations of one (route, format, code), fresh or stale. Whoever writes an answer adds to it in
    place: a call would be a twentieth of what a remembered answer costs."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0


@dataclass(frozen=True, slots=True)
class Durations:
    """One cell at one moment."""

    route: str
    format: str
    code: int
    is_stale: bool
    buckets: tuple[int, ...]
    """Not cumulative: one count per bound, and one for what is above the last."""
    seconds: float
    """Sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    """Everything counted, at one moment."""

    durations: tuple[Durations, ...]
    in_flight: int
    connections: int
    connections_refused: int
    connections_refused_by_address: int
    requests_refused: int
    malformed: int
    disconnects: int
    header_timeouts: int
    write_stalls: int
    held_cuts: int
    idle_closed: int
    accept_errors: int
    body_files_lost: int
    at_once: int
    memo_hits: int


class RequestStats:
    """Counters of one server. All but ``snapshot`` is for the server alone."""

    __slots__ = (
        "accept_errors",
        "at_once",
        "body_files_lost",
        "cells",
        "connections",
        "connections_refused",
        "connections_refused_by_address",
        "disconnects",
        "header_timeouts",
        "held_cuts",
        "idle_closed",
        "in_flight",
        "in_flight_elsewhere",
        "malformed",
        "memo_hits",
        "requests_refused",
        "write_stalls",
    )

    def __init__(self) -> None:
        self.cells: defaultdict[tuple[str, str, int, bool], Cell] = defaultdict(Cell)
        """By route, format, code, and whether the answer is stale. Labels are ours, never a client's, so
        the cells are few."""
        self.in_flight = 0
        """Requests whose answer is being looked for."""
        self.in_flight_elsewhere = 0
        """Those of them that a backend is asked to answer."""
        self.connections = 0
        self.connections_refused = 0
        """Closed at once: the cap on all together was reached."""
        self.connections_refused_by_address = 0
        """Closed at once: their address had as many as it may."""
        self.requests_refused = 0
        """Answered 429: as many as may wait were waiting."""
        self.malformed = 0
        self.disconnects = 0
        """Clients that left before their answer was complete."""
        self.header_timeouts = 0
        self.write_stalls = 0
        self.accept_errors = 0
        """Tries to take a connection that the kernel would not hand out: too many files are open."""
        self.body_files_lost = 0
        """Memory files whose descriptor something else closed; their bodies leave from memory."""
        self.idle_closed = 0
        """Closed to make room for a new connection: idle longest when as many as may be were open."""
        self.held_cuts = 0
        """Cut: all connections together held too much of requests, and these held most."""
        self.at_once = 0
        """Answered in the turn of the event loop in which they came; includes ``memo_hits``."""
        self.memo_hits = 0
        """Answered without parsing: the same bytes had been a whole request before."""

    def snapshot(self) -> RequestCounts:
        return RequestCounts(
            durations=tuple(
                Durations(route, format_, code, is_stale, tuple(cell.buckets), cell.seconds)
                for (route, format_, code, is_stale), cell in sorted(self.cells.items())
            ),
            in_flight=self.in_flight,
            connections=self.connections,
            connections_refused=self.connections_refused,
            connections_refused_by_address=self.connections_refused_by_address,
            requests_refused=self.requests_refused,
            malformed=self.malformed,
            disconnects=self.disconnects,
            header_timeouts=self.header_timeouts,
            write_stalls=self.write_stalls,
            held_cuts=self.held_cuts,
            idle_closed=self.idle_closed,
            accept_errors=self.accept_errors,
            body_files_lost=self.body_files_lost,
            at_once=self.at_once,
            memo_hits=self.memo_hits,
        )

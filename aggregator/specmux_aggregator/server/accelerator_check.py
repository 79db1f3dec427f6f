"""Proof, at each start, that the accelerator and the installed aiohttp understand each other.

A few exchanges over a transport in memory, each of which must come out as the ordinary tier would answer it.
An aiohttp that moved one of its private parts shows here, and costs speed, not answers.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.web_protocol import RequestHandler

from specmux_aggregator.config.settings import Listen
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import Prepared, prepare
from specmux_aggregator.server.accelerator import AcceleratedConnection
from specmux_aggregator.server.connection import Connection
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.protocols import WireRequest
from specmux_aggregator.server.responses import WireResponse
from specmux_aggregator.server.stats import RequestStats

TRIED: Final = "3.14."
"""Releases of aiohttp whose private parts this was written against."""

PRIVATE: Final = (
    "_buffer_paused",
    "_close",
    "_force_close",
    "_keepalive_timeout",
    "_messages",
    "_next_keepalive_close_time",
    "_parser",
    "_pause_reading_for_buffer",
    "_paused",
    "_request_count",
    "_resume_reading_if_drained",
    "_upgraded",
    "_waiter",
)

PLAIN: Final = b"GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n"
CLOSING: Final = b"GET /canary HTTP/1.1\r\nHost: canary\r\nConnection: close\r\n\r\n"
ANSWER: Final = prepare(200, [("Content-Type", "text/plain")], b"tweet")
TURNS: Final = 50
"""Turns of the event loop that an answer of the ordinary tier may take."""


async def complaint() -> str | None:
    """Why the accelerator must stay off; None: it works here."""
    if not aiohttp.__version__.startswith(TRIED):
        return f"aiohttp {aiohttp.__version__} is not {TRIED}x"
    missing = [name for name in PRIVATE if not hasattr(RequestHandler, name)]
    if missing:
        return f"aiohttp's connection has no {', '.join(missing)}"
    try:
        return await _try_requests()
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__} in the trial: {error}"


async def _try_requests() -> str | None:
    stats = RequestStats()
    service = _Service()
    connections = Connections(
        _handle,
        Listen(),
        stats=stats,
        make_connection=partial(
            AcceleratedConnection, answers=Answers(service, stats), is_ours=lambda message, connection: True
        ),
    )
    connection: Any = connections()
    transport = _Transport(connection)
    connection.connection_made(transport)
    try:
        return await _answer_each(connection, transport, stats)
    finally:
        transport.close()
        await _turn(lambda: stats.connections == 0)


async def _answer_each(connection: Connection, transport: _Transport, stats: RequestStats) -> str | None:
    await _turn(lambda: connection.is_idle)
    for number, (data, answers, accelerated, memo_hits) in enumerate(
        [
            (PLAIN, 1, 1, 0),
            (PLAIN, 1, 2, 0),
            (PLAIN, 1, 3, 1),
            (PLAIN * 3, 3, 3, 1),
            (PLAIN[:20], 0, 3, 1),
            (PLAIN[20:], 1, 4, 1),
            (PLAIN, 1, 5, 2),
            (CLOSING, 1, 5, 2),
        ]
    ):
        transport.written = b""
        connection.data_received(data)
        await _turn(partial(transport.has_answered, answers))
        expected = [ANSWER.head] * answers
        found = transport.written.split(ANSWER.body)[:-1]
        if len(found) != answers or not all(map(bytes.startswith, found, expected)):
            return f"request {number} of the trial was answered wrongly"
        if (stats.accelerated, stats.memo_hits) != (accelerated, memo_hits):
            return f"request {number} of the trial took another way"
        await _turn(lambda: connection.is_idle or transport.is_closing())
    return None if transport.is_closing() else "the connection was not closed when it was asked to be"


async def _turn(done: Any) -> None:
    for _ in range(TURNS):
        if done():
            return
        await asyncio.sleep(0)


async def _handle(request: WireRequest) -> WireResponse:
    return WireResponse(
        ANSWER, connection=request.connection, started=0.0, is_last=request.message.should_close
    )


class _Service:
    generation = 1

    def immediate(self, request: Request) -> Prepared | None:
        return ANSWER if request.path == "/canary" else None

    async def respond(self, request: Request) -> Prepared:
        return ANSWER


class _Transport(asyncio.Transport):
    """A client in memory that reads everything at once."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._is_closing = False
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def has_answered(self, times: int) -> bool:
        return self.written.count(ANSWER.body) >= times

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

"""A read timeout whose timer stays, against a clock that is set by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler

from specmux_cache.http.connector import CheckedConnector
from specmux_cache.http.timed_responses import EARLY, TimedResponses


class Timer:
    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """As much of an event loop as timers are."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []
        self.made = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        self.made += 1
        self.timers.append(Timer(when, call))
        return self.timers[-1]

    def pass_until(self, moment: float) -> None:
        while due := [each for each in self.timers if each.when <= moment and not each.is_cancelled]:
            first = min(due, key=lambda each: each.when)
            self.timers.remove(first)
            self.now = first.when
            first.call()
        self.now = moment


class Open(asyncio.Transport):
    """An open connection, of which nothing is wanted."""

    def close(self) -> None:
        pass


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def responses(clock: Clock) -> TimedResponses:
    loop: Any = clock
    made = TimedResponses(loop)
    made.transport = Open()
    made.read_timeout = 10.0
    return made


def test_silence_ends_a_read_when_its_time_is_over(clock: Clock, responses: TimedResponses) -> None:
    responses.start_timeout()
    clock.pass_until(109.9)
    assert responses.exception() is None
    clock.pass_until(110.0)
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)


def test_whatever_comes_puts_it_off_without_a_timer_more(clock: Clock, responses: TimedResponses) -> None:
    for moment in range(100, 200):
        clock.pass_until(moment)
        responses.start_timeout()
    assert clock.made <= 11
    clock.pass_until(208.9)
    assert responses.exception() is None
    clock.pass_until(209.0)
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)


def test_nothing_is_waited_for_between_requests(clock: Clock, responses: TimedResponses) -> None:
    responses.start_timeout()
    responses._drop_timeout()
    clock.pass_until(1_000.0)
    assert responses.exception() is None
    assert not clock.timers
    responses.start_timeout()
    clock.pass_until(1_010.0)
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)


def test_a_pause_of_our_own_counts_for_nothing(clock: Clock, responses: TimedResponses) -> None:
    responses.start_timeout()
    clock.pass_until(105.0)
    responses._drop_timeout()
    clock.pass_until(112.0)
    responses.start_timeout()
    clock.pass_until(121.9)
    assert responses.exception() is None
    clock.pass_until(122.0)
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)


def test_a_request_that_waits_less_long_is_ended_earlier(clock: Clock, responses: TimedResponses) -> None:
    responses.start_timeout()
    responses._drop_timeout()
    responses.read_timeout = 2.0
    responses.start_timeout()
    clock.pass_until(102.0)
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)
    assert all(timer.is_cancelled for timer in clock.timers)


def test_without_a_timeout_there_is_no_timer(clock: Clock, responses: TimedResponses) -> None:
    responses.read_timeout = None
    responses.start_timeout()
    assert not clock.made


def test_a_timer_that_goes_off_early_is_taken_for_exact(clock: Clock, responses: TimedResponses) -> None:
    responses.start_timeout()
    clock.now = 110.0 - EARLY / 2
    clock.timers.pop().call()
    assert isinstance(responses.exception(), aiohttp.SocketTimeoutError)


@pytest.mark.parametrize("end", [ResponseHandler.close, lambda it: it.connection_lost(None)])
def test_a_closed_connection_leaves_no_timer(
    end: Callable[[TimedResponses], None], clock: Clock, responses: TimedResponses
) -> None:
    responses.start_timeout()
    end(responses)
    assert all(timer.is_cancelled for timer in clock.timers)


def test_connections_have_it() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(10):
            server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            connector = CheckedConnector()
            made: list[object] = []
            factory = connector._factory
            connector._factory = lambda: made.append(factory()) or made[-1]  # type: ignore[assignment,func-returns-value,return-value]
            async with aiohttp.ClientSession(connector=connector) as session:
                with pytest.raises(aiohttp.ClientError):
                    await session.get(f"http://{host}:{port}/")
            assert made
            assert all(isinstance(each, TimedResponses) for each in made)
            server.close()

    asyncio.run(scenario())

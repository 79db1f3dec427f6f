"""How much one client has done in one turn of the event loop, for which all others wait."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from deadline import DEADLINE
from running.serving import BIG, TIERS, Running, read_answer, read_exactly, request, running
from specmux_aggregator.server.incoming import RECEIVE, TURN_MAX

COUNT = 2_000


def answered(started: Running) -> int:
    return sum(sum(cell.buckets) for cell in started.counts.durations)


async def answers_by_turn(started: Running, count: int) -> list[int]:
    """How many there were in each turn, until there are ``count``."""
    seen = [answered(started)]
    async with asyncio.timeout(DEADLINE):
        while seen[-1] < count:
            await asyncio.sleep(0)
            seen.append(answered(started))
    return [later - earlier for earlier, later in pairwise(seen)]


@pytest.mark.parametrize("tier", TIERS)
def test_client_that_pipelines_has_few_answers_in_a_turn(tier: str) -> None:
    sent = b"".join(request(f"/{number}") for number in range(COUNT))
    assert len(sent) > 3 * RECEIVE
    with running(tier) as started, started.connect() as client, ThreadPoolExecutor(2) as threads:
        turns = asyncio.run_coroutine_threadsafe(answers_by_turn(started, COUNT), started.loop)
        started.loop.call_soon_threadsafe(time.sleep, 0.3)  # so that much is there at once
        sending = threads.submit(client.sendall, sent)
        for number in range(COUNT):
            assert f"/{number}?".encode() in read_answer(client)
        sending.result(DEADLINE)
        # What is watched may have its turn before a connection's one time, and after it the next.
        assert max(turns.result(DEADLINE)) <= 2 * TURN_MAX


def test_large_body_of_a_request_leaves_no_trace_in_the_next() -> None:
    body = BIG[: 3 * RECEIVE + 1]
    with running() as started, started.connect() as client:
        started.loop.call_soon_threadsafe(time.sleep, 0.1)
        fields = f"Content-Length: {len(body)}"
        client.sendall(request("/a", fields, method="POST", body=body) + request("/b"))
        assert read_answer(client).startswith(b"HTTP/1.1 405 ")
        assert b"/b?" in read_answer(client)


def test_client_that_reads_slowly_gets_all_of_a_large_read_in_order() -> None:
    sent = b"".join(request("/wide" if number % 50 == 0 else f"/{number}") for number in range(600))
    with (
        running() as started,
        started.connect(receive_buffer=4096) as client,
        ThreadPoolExecutor(1) as threads,
    ):
        started.loop.call_soon_threadsafe(time.sleep, 0.1)
        sending = threads.submit(client.sendall, sent)
        for number in range(600):
            if number % 50 == 0:
                time.sleep(0.005)
                assert read_answer(client).endswith(b"x" * 100_000)
            else:
                assert f"/{number}?".encode() in read_answer(client)
        sending.result(DEADLINE)
        client.sendall(request("/last", close=True))
        assert read_exactly(client, 15) == b"HTTP/1.1 200 OK"

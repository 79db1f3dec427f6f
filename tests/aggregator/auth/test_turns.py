"""Turns by address: an address that wants more than its share makes itself wait, and nobody else."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry

from deadline import DEADLINE
from fakes.reviewer import TOKEN, reviewing
from running.serving import eventually, read_answer, request, running
from specmux_aggregator.auth import reviews
from specmux_aggregator.auth.fair_queue import TooManyWait, Turns
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics

GREEDY, MODEST, THIRD = b"greedy", b"modest", b"third"


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_address_has_its_share_and_leaves_the_rest() -> None:
    turns = Turns(4, of_one=3, waiting_of_one=10)
    order: list[bytes] = []

    async def take(address: bytes) -> None:
        await turns.take(address)
        order.append(address)

    tasks = [asyncio.create_task(take(GREEDY)) for _ in range(8)]
    await settle()
    assert order == [GREEDY] * 3
    await take(MODEST)  # at once
    tasks += [asyncio.create_task(take(address)) for address in (MODEST, THIRD, MODEST)]
    await settle()
    assert order == [*[GREEDY] * 3, MODEST]
    for address in (GREEDY, GREEDY, GREEDY, MODEST, GREEDY):
        turns.give_back(address)
        await settle()
    assert order[4:] == [GREEDY, MODEST, THIRD, GREEDY, MODEST], "in rotation"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_no_more_of_one_address_wait_than_may() -> None:
    turns = Turns(2, of_one=1, waiting_of_one=2)
    await turns.take(GREEDY)
    waiting = [asyncio.create_task(turns.take(GREEDY)) for _ in range(2)]
    await settle()
    with pytest.raises(TooManyWait):
        await turns.take(GREEDY)
    await turns.take(MODEST)
    for _ in range(3):
        turns.give_back(GREEDY)
        await settle()
    assert all(task.done() for task in waiting)
    assert not turns._waiting


async def test_turn_that_comes_as_its_taker_leaves_goes_to_the_next() -> None:
    turns = Turns(1, of_one=1, waiting_of_one=9)
    await turns.take(GREEDY)
    leaving, next_one = asyncio.create_task(turns.take(MODEST)), asyncio.create_task(turns.take(THIRD))
    await settle()
    turns.give_back(GREEDY)
    leaving.cancel()  # its turn has come, and it has not heard of that
    await asyncio.wait_for(next_one, DEADLINE)
    assert leaving.cancelled()


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_happens_no_turn_is_lost_and_none_is_taken_twice(seed: int) -> None:
    chance = random.Random(seed)
    turns = Turns(5, of_one=3, waiting_of_one=6)
    taken: Counter[bytes] = Counter()

    async def client(address: bytes) -> None:
        try:
            async with asyncio.timeout(chance.choice((0.0, 0.002, 1.0))):
                await turns.take(address)
        except (TimeoutError, TooManyWait):
            return
        taken[address] += 1
        assert taken[address] <= 3
        assert taken.total() <= 5
        await asyncio.sleep(chance.choice((0.0, 0.001)))
        taken[address] -= 1
        turns.give_back(address)

    async with asyncio.TaskGroup() as group:
        for _ in range(400):
            group.create_task(client(chance.choice((GREEDY, GREEDY, GREEDY, MODEST, THIRD))))
            if chance.random() < 0.1:
                await asyncio.sleep(0.001)
    assert (turns._free, +turns._taken, len(turns._waiting)) == (5, Counter(), 0)


def test_flood_of_tokens_from_one_address_does_not_keep_another_out() -> None:
    flood = 100
    with reviewing() as reviewer, ExitStack() as stack:
        reviewer.fake.know("alice-token", "alice")
        gate = gate_of(
            Settings(auth=AuthSettings(mode="kubernetes")),
            Metrics(CollectorRegistry()),
            cluster=reviewer.fake.backend,
        )
        assert gate is not None
        server = stack.enter_context(running("memoised", gate=gate))
        eventually(lambda: gate.complaint() is None)
        reviewer.fake.delay = {TOKEN: 0.5}
        before = len(reviewer.fake.log[TOKEN])
        for number in range(flood):
            client = socket.create_connection(("127.0.0.1", server.port), 10, source_address=("127.0.0.2", 0))
            stack.enter_context(client)
            client.sendall(request("/a", f"Authorization: Bearer guess-{number}"))
        eventually(lambda: len(reviewer.fake.log[TOKEN]) >= before + reviews.OF_ONE_ADDRESS)
        with server.connect() as alice:
            alice.sendall(request("/a", "Authorization: Bearer alice-token"))
            assert read_answer(alice).startswith(b"HTTP/1.1 200 ")
        # One queue for all would have it wait for 100 reviews, 8 at a time: 6 s, and be refused after 5.
        assert len(reviewer.fake.log[TOKEN]) < before + flood

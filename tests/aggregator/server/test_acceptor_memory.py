"""What acceptors keep alive: no more than a memo, and nothing that the service has evicted."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from specmux_aggregator.http.prepared_answer import prepare
from specmux_aggregator.server.acceptors.acceptor import LearntAnswers
from specmux_aggregator.server.acceptors.keeper import Keeper
from specmux_aggregator.server.acceptors.messages import (
    PassedConnection,
    SharedGeneration,
    send,
    socket_pair,
)
from specmux_aggregator.server.acceptors.passing import Acceptors
from specmux_aggregator.server.memo import GENERATION_BYTES
from specmux_aggregator.server.stats import RequestStats

SIZE = GENERATION_BYTES // 4
COUNT = 150
ANSWER = prepare(200, [])


def learn(answers: LearntAnswers, number: int) -> None:
    file = os.memfd_create("body")
    os.truncate(file, SIZE)
    request = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number
    answers.learn(PassedConnection(1, request, 0, ANSWER, SIZE), file)


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_bodies_of_one_generation_are_kept_within_bounds() -> None:
    shared = SharedGeneration()
    answers = LearntAnswers(shared, RequestStats(), takes_secrets=False)
    before = count_descriptors()
    for number in range(COUNT):
        learn(answers, number)
    assert before + 2 < count_descriptors() <= before + 2 * 80  # a file, and the one of its mapping
    shared.set(1)
    answers.forget_former()
    assert count_descriptors() == before


async def test_eviction_that_publishes_nothing_reaches_acceptors() -> None:
    generation, shared = 1, SharedGeneration()
    with contextlib.ExitStack() as stack:
        pairs = [socket_pair(), socket_pair()]
        (control, keeper), (service, acceptor) = (
            [stack.enter_context(one) for one in pair] for pair in pairs
        )
        control.setblocking(False)
        acceptors = Acceptors(Keeper(control, shared, 0), lambda: generation)
        unused: Any = SimpleNamespace(stats=RequestStats())
        acceptors.serve(unused, unused)
        acceptors.renew()
        send(keeper, None, [service.fileno()])
        generation = 2
        assert shared.generation == 1
        send(acceptor, RequestStats().snapshot())
        for _ in range(100):
            if shared.generation == 2:
                break
            await asyncio.sleep(0.01)
        assert shared.generation == 2
        asyncio.get_running_loop().remove_reader(control)

"""Large answers of all backends are held within one budget, and wait for each other."""

from __future__ import annotations

import asyncio
import gc
import random

import pytest

from aggregator.upstream.test_client import PATIENT, backend_at
from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.upstream.body_budget import SMALL, BodyBudget, Share
from specmux_aggregator.upstream.client import BackendClient, Payload

ROOM = 400


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_is_held_is_given_back_with_its_last_reference() -> None:
    async def scenario() -> list[int]:
        budget = BodyBudget(ROOM)
        share: Share | None = await budget.take("a", 100)
        seen = [budget.held]
        same = share
        share = None
        await turns()
        seen.append(budget.held)
        same = None
        gc.collect()
        await turns()
        assert share is same is None
        return [*seen, budget.held]

    assert asyncio.run(scenario()) == [100, 100, 0]


async def test_a_body_larger_than_all_room_has_it_alone() -> None:
    budget = BodyBudget(ROOM)
    share = await budget.take("a", 10 * ROOM)
    waiting = asyncio.create_task(budget.take("b", 1))
    await turns()
    assert not waiting.done()
    del share
    await waiting


@pytest.mark.parametrize(
    ("held", "wanted", "is_let_in"),
    [
        ([("a", 100)], ("a", 10), False),  # more than a quarter
        ([("a", 50)], ("a", 50), True),
        ([("a", 100)], ("b", 300), True),  # its first may be of any size
        ([("a", 100)], ("b", 301), False),
    ],
)
def test_one_backend_has_a_quarter_beside_its_first(
    held: list[tuple[str, int]], wanted: tuple[str, int], is_let_in: bool
) -> None:
    async def scenario() -> bool:
        budget = BodyBudget(ROOM)
        shares = [await budget.take(*item) for item in held]
        waiting = asyncio.create_task(budget.take(*wanted))
        await turns()
        is_done = waiting.done()
        shares.clear()
        await waiting
        return is_done

    assert asyncio.run(scenario()) is is_let_in


def test_who_waits_for_its_own_holds_up_nobody_and_the_first_in_line_is_not_passed() -> None:
    async def scenario() -> list[list[str]]:
        budget = BodyBudget(ROOM)
        held = {"a200": await budget.take("a", 200)}
        order: list[str] = []

        async def one(owner: str, size: int) -> None:
            held[f"{owner}{size}"] = await budget.take(owner, size)
            order.append(f"{owner}{size}")

        tasks = [asyncio.create_task(one(*item)) for item in (("a", 100), ("b", 50), ("c", 300), ("d", 1))]
        seen = []
        for leaving in ("a200", "b50", "a100", "c300"):
            await turns()
            seen.append([*order])
            del held[leaving]
        await asyncio.gather(*tasks)
        return [*seen, order]

    assert asyncio.run(scenario()) == [
        ["b50"],
        ["b50", "a100"],
        ["b50", "a100", "c300"],
        ["b50", "a100", "c300", "d1"],
        ["b50", "a100", "c300", "d1"],
    ]


def test_who_stops_waiting_leaves_the_line_and_holds_nothing() -> None:
    async def scenario() -> int:
        budget = BodyBudget(ROOM)
        share = await budget.take("a", ROOM)
        leaving = asyncio.create_task(budget.take("b", ROOM))
        staying = asyncio.create_task(budget.take("c", 1))
        await turns()
        leaving.cancel()
        await turns()
        del share
        await asyncio.wait_for(staying, DEADLINE)
        late = asyncio.create_task(budget.take("d", ROOM))
        await turns()
        late.cancel()
        del staying
        await asyncio.gather(leaving, late, return_exceptions=True)
        gc.collect()
        await turns()
        return budget.held

    assert asyncio.run(scenario()) == 0


def test_large_documents_of_one_backend_are_held_one_after_the_other() -> None:
    size = 4 * SMALL

    async def scenario() -> list[int]:
        noise = random.Random(1).randbytes(size)  # compressed it is as large
        server = FakeAPIServer(swagger_document=noise)
        await server.start()
        budget = BodyBudget(2 * size)
        client = BackendClient(backend_at(server.url), polling=PATIENT, limits=LimitSettings(), bodies=budget)

        async def one() -> int:
            payload = await client.swagger()
            assert isinstance(payload, Payload)
            await asyncio.sleep(0.01)
            return budget.held

        try:
            held = await asyncio.gather(*(one() for _ in range(6)))
        finally:
            await client.close()
            await server.stop()
        await turns()
        assert budget.held == 0
        return held

    held = asyncio.run(scenario())
    assert len(held) == 6
    assert SMALL < min(held) <= max(held) < 2 * size

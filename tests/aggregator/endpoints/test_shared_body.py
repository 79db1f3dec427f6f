from __future__ import annotations

import asyncio

import pytest

from specmux_aggregator.endpoints import health as shared_body
from specmux_aggregator.endpoints.health import LARGE, SharedBody


class Maker:
    def __init__(self, size: int) -> None:
        self.size = size
        self.times = 0

    async def make(self) -> bytes:
        self.times += 1
        await asyncio.sleep(0.01)
        return bytes(self.size)


@pytest.mark.parametrize("size", [10, LARGE, 10 * LARGE])
async def test_all_who_ask_at_once_get_the_same_bytes(size: int) -> None:
    maker = Maker(size)
    body = SharedBody(maker.make)
    bodies = await asyncio.gather(*(body.get() for _ in range(300)))
    assert maker.times == 1
    assert len({id(item) for item in bodies}) == 1


async def test_large_body_is_kept_for_a_while_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = Maker(LARGE - 1), Maker(LARGE)
    for maker in (small, large):
        body = SharedBody(maker.make)
        for _ in range(3):
            await body.get()
        monkeypatch.setattr(shared_body, "KEPT", 0.0)
        await body.get()
        monkeypatch.undo()
    assert (small.times, large.times) == (4, 2)

"""Which values are a trace, and how long it lasts."""

from __future__ import annotations

import asyncio

import pytest

from specmux_aggregator.http.trace_context import current_parent, trace_request

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_valid_parent_is_current_within_the_request_only() -> None:
    assert current_parent() is None
    with trace_request([PARENT]):
        assert current_parent() == PARENT
    assert current_parent() is None


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        [PARENT, PARENT],
        [PARENT.upper()],
        ["ff" + PARENT[2:]],
        [f"{PARENT}\r\nAuthorization: Bearer x"],
        [f"{PARENT}-more"],
        ["00-" + "0" * 32 + "-b7ad6b7169203331-01"],
        ["00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01"],
    ],
)
def test_anything_else_is_no_trace(values: list[str]) -> None:
    with trace_request(values):
        assert current_parent() is None


async def test_task_that_outlives_the_request_belongs_to_no_trace() -> None:
    ended = asyncio.Event()
    seen: list[str | None] = []

    async def lasting() -> None:
        seen.append(current_parent())
        await ended.wait()
        seen.append(current_parent())

    with trace_request([PARENT]):
        task = asyncio.create_task(lasting())
        await asyncio.sleep(0)
    ended.set()
    await task
    assert seen == [PARENT, None]

"""Random streams of requests, many of them broken: every tier answers each as the others do, to the byte."""

from __future__ import annotations

import asyncio

from running.request_streams import stream
from running.tiers_in_memory import answers, tiers_in_memory

STREAMS = 1_500
"""tests/stress/stress_tiers.py runs as many as one likes."""


async def differences(first: int, count: int) -> tuple[list[int], int]:
    """Seeds of the streams that the tiers answer differently, and how many of all were refused somewhere."""
    found, refused = [], 0
    async with tiers_in_memory() as servers:
        for seed in range(first, first + count):
            pieces = stream(seed)
            told = [await answers(server, pieces) for server in servers.values()]
            if len(set(told)) != 1:
                found.append(seed)
            refused += b"HTTP/1.1 4" in told[0][0]
    return found, refused


FOUND = (
    # aiohttp makes no path of an empty target, which is let through with CONNECT.
    [b"CONNECT  \r\nHost: a\r\n\r\n"],
    [b"CONNECT  \r\nHost: ", b"a\r\n\r\nH", b"EAD /bad HTTP/2.0\r\nHost: a\r\n\r\n"],
)
"""Streams that were answered by no tier, or by some in another way."""


def test_streams_that_went_wrong_once_are_answered_alike() -> None:
    async def scenario() -> None:
        async with tiers_in_memory() as servers:
            for pieces in FOUND:
                told = {await answers(server, pieces) for server in servers.values()}
                assert len(told) == 1
                assert told.pop()[0].startswith(b"HTTP/1.1 505 ")

    asyncio.run(scenario())


def test_every_tier_answers_a_random_stream_alike() -> None:
    found, refused = asyncio.run(differences(0, STREAMS))
    assert found == []
    assert STREAMS // 4 < refused < STREAMS

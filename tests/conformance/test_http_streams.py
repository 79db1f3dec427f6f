"""Random streams of requests, many of them broken: every tier answers each as the others do, to the byte."""

from __future__ import annotations

import asyncio

import pytest

from running.request_streams import cuts_of, stream
from running.tiers_in_memory import answers, tiers_in_memory

STREAMS = 1_500
CUT = 150
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


async def cut_dependent(first: int, count: int) -> tuple[list[int], int]:
    """Seeds of the streams that are answered in another way when they are cut in another way, and how many
    have answers before a refusal."""
    found, refused = [], 0
    async with tiers_in_memory() as servers:
        for seed in range(first, first + count):
            told = {await answers(server, cut) for cut in cuts_of(seed) for server in servers.values()}
            if len(told) != 1:
                found.append(seed)
            refused += any(said.count(b"HTTP/1.1 ") > 1 and b"HTTP/1.1 400" in said for said, _ in told)
    return found, refused


FOUND = (
    # aiohttp makes no path of an empty target, which is let through with CONNECT.
    [b"CONNECT  \r\nHost: a\r\n\r\n"],
    [b"CONNECT  \r\nHost: ", b"a\r\n\r\nH", b"EAD /bad HTTP/2.0\r\nHost: a\r\n\r\n"],
)
"""Streams that were answered by no tier, or by some in another way."""


async def test_streams_that_went_wrong_once_are_answered_alike() -> None:
    async with tiers_in_memory() as servers:
        for pieces in FOUND:
            told = {await answers(server, pieces) for server in servers.values()}
            assert len(told) == 1
            assert told.pop()[0].startswith(b"HTTP/1.1 505 ")


def test_every_tier_answers_a_random_stream_alike() -> None:
    found, refused = asyncio.run(differences(0, STREAMS))
    assert found == []
    assert STREAMS // 4 < refused < STREAMS


@pytest.mark.long
def test_answers_do_not_depend_on_where_a_stream_is_cut() -> None:
    found, refused = asyncio.run(cut_dependent(0, CUT))
    assert found == []
    assert CUT // 5 < refused < CUT


GOOD = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("count", [1, 20, 100])
@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (b"NO SUCH THING\r\n\r\n", 400),
        (b"GET /a HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
        (b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 9_000 + b"\r\n\r\n", 400),
        (b"GET /a RTSP/1.0\r\nHost: a\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00", 400),
    ],
)
async def test_good_requests_before_a_malformed_one_in_the_same_read_are_answered(
    count: int, bad: bytes, status: int
) -> None:
    async with tiers_in_memory() as servers:
        for server in servers.values():
            said, _ = await answers(server, [GOOD * count + bad + GOOD])
            assert [int(one[:3]) for one in said.split(b"HTTP/1.1 ")[1:]] == [200] * count + [status]


async def test_body_that_is_broken_in_the_read_of_its_head_is_that_of_a_request_that_is_answered() -> None:
    head = b"GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with tiers_in_memory() as servers:
        for server in servers.values():
            whole = await answers(server, [GOOD + head + b"no size\r\n" + GOOD])
            cut = await answers(server, [GOOD, head, b"no size\r\n" + GOOD])
            assert whole == cut
            assert whole[0].count(b" 200 OK") == 2

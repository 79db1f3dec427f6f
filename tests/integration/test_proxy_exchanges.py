"""Answers that are passed on go to whom they belong, whatever else a backend sends."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from deadline import DEADLINE
from fakes.streaming_backend import OK, Seen
from running.proxying_service import THINGS, proxying
from running.service import Client
from running.wire_client import WireClient, connected

USERS = 40
STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nnobody"


def answer_to(seen: Seen) -> bytes:
    body = (seen.values("Authorization")[0] + " " + seen.target).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class Sloppy:
    """A script that sends a stray answer, or a piece of one, after each third of its own."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.quiet: dict[str, asyncio.Event] = {}

    async def __call__(self, seen: Seen) -> None:
        quiet = self.quiet.setdefault(seen.target, asyncio.Event())
        try:
            await seen.write(answer_to(seen))
            if self._random.randrange(3) == 0:
                await asyncio.sleep(self._random.choice((0.0, 0.001, 0.005)))
                await seen.write(STRAY[: self._random.choice((1, 20, 60, len(STRAY)))])
        finally:
            quiet.set()


async def ask(wire: WireClient, user: str, target: str) -> tuple[int, bytes]:
    await wire.ask(target, f"Authorization: Bearer {user}")
    answer, body = await wire.answer()
    return answer.status, body


async def wrong_answers(client: Client, sloppy: Sloppy, count: int) -> list[Any]:
    wrong = []

    async def user(number: int) -> None:
        # Two users over one connection in turn, as behind a proxy.
        async with connected(client.base) as wire:
            for turn in range(count // USERS):
                name, target = f"u{number}-{turn % 2}", f"{THINGS}/{number}/{turn}"
                status, body = await ask(wire, name, target)
                if status == 200 and body != f"Bearer {name} {target}".encode():
                    wrong.append((name, target, body))
                if (
                    target in sloppy.quiet
                ):  # else the request did not reach the backend: its connection had ended
                    await asyncio.wait_for(sloppy.quiet[target].wait(), DEADLINE)

    await asyncio.gather(*(user(number) for number in range(USERS)))
    return wrong


async def test_stray_answer_to_one_user_ends_the_connections_of_all() -> None:
    """Else each user's connections would have to be caught by a stray of their own."""
    strays = [STRAY]

    async def script(seen: Seen) -> None:
        await seen.write(answer_to(seen))
        if seen.values("Authorization") == ["Bearer alice"] and strays:
            await asyncio.sleep(0.01)
            await seen.write(strays.pop())

    async with proxying(script) as (origin, client), connected(client.base) as wire:
        for user in ("bob", "alice"):
            await ask(wire, user, THINGS)
        while strays:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        for _ in range(2):
            assert (await ask(wire, "bob", THINGS))[1] == f"Bearer bob {THINGS}".encode()
        used = [id(seen.writer) for seen in origin.requests if seen.values("Authorization") == ["Bearer bob"]]
    assert len(used) == len(set(used)) == 3


@pytest.mark.parametrize("seed", range(3))
async def test_no_user_gets_anothers_answer(seed: int) -> None:
    sloppy = Sloppy(seed)
    async with proxying(sloppy) as (_, client):
        assert await wrong_answers(client, sloppy, 800) == []


async def test_users_share_no_connection_and_each_keeps_one() -> None:
    async def script(seen: Seen) -> None:
        await seen.write(answer_to(seen))

    async with proxying(script) as (origin, client), connected(client.base) as wire:
        for _ in range(3):
            for user in ("alice", "bob"):
                assert (await ask(wire, user, THINGS))[1] == f"Bearer {user} {THINGS}".encode()
        used = {
            user: {
                id(seen.writer)
                for seen in origin.requests
                if seen.values("Authorization") == [f"Bearer {user}"]
            }
            for user in ("alice", "bob")
        }
        assert {user: len(writers) for user, writers in used.items()} == {"alice": 1, "bob": 1}
        assert not used["alice"] & used["bob"]


@pytest.mark.parametrize(
    "sloppy", [b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', OK], ids=["body of a 304", "short length"]
)
async def test_one_stray_answer_shifts_nothing(sloppy: bytes) -> None:
    async def script(seen: Seen) -> None:
        if seen.target.endswith("/mallorys"):
            await seen.write(sloppy)
            await asyncio.sleep(0.01)
            await seen.write(STRAY)
        else:
            await seen.write(answer_to(seen))

    async with proxying(script) as (_, client), connected(client.base) as wire:
        await ask(wire, "mallory", f"{THINGS}/mallorys")
        await asyncio.sleep(0.05)
        for number in range(20):
            user = f"user-{number}"
            assert await ask(wire, user, THINGS) == (200, f"Bearer {user} {THINGS}".encode())

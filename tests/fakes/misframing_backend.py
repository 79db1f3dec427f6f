"""A backend that often sends more or less than its answers say, at random times. Every answer names its
request."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from deadline import DEADLINE
from fakes.sending import send

STRAY = (
    b"HTTP/1.1 200 OK\r\nX-Answers: nobody\r\nContent-Length: 6\r\n\r\nnobody",
    b"HTTP/1.1 200 OK\r\nX-Answers: nobody\r\nContent-Le",
    b"HTTP/1.1 200 OK\r\nX-Answers: nobody\r\nContent-Length: 400\r\n\r\nnobo",
    b"HTTP/1.1 304 Not Modified\r\nX-Answers: nobody\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"nobody",
    b"\r\n",
    b"0\r\n\r\n",
)
"""What comes after an answer: whole answers, pieces of some, no answers."""


@dataclass
class Misframing:
    """``faulty`` of a hundred answers are not what they say."""

    seed: int
    faulty: int = 30
    strays: int = 0
    quiet: dict[str, asyncio.Event] = field(default_factory=dict)
    """By request: set once nothing more comes of its answer."""

    url: str = ""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def until_quiet(self, asked: str, patience: float) -> None:
        """Until nothing more comes of an answer: all of it is in the other side's socket, read or not.
        ``patience``: seconds, for a request that never came here."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.quiet.setdefault(asked, asyncio.Event()).wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, target, _ = head.split("\r\n")[0].split(" ")
                asked = target.rpartition("=")[2]
                quiet = self.quiet.setdefault(asked, asyncio.Event())
                quiet.clear()  # aiohttp asks again where a kept connection ends
                try:
                    if await self._answer(writer, method, asked):
                        return
                finally:
                    quiet.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.tasks.discard(task)

    async def _answer(self, writer: asyncio.StreamWriter, method: str, asked: str) -> bool:
        """Whether the connection ends with it."""
        chance = self._random
        answer = _answer(chance.choice(("length", "chunks", "none", "empty")), method, asked)
        if chance.randrange(100) >= self.faulty:
            await send(writer, answer)
            return False
        if chance.randrange(5) == 0:  # too little, and the end
            await send(writer, answer[:-1])
            return True
        self.strays += 1
        stray = chance.choice(STRAY)
        cut = chance.randrange(len(stray))
        delay = chance.choice((None, 0.0, 0.001, 0.003))
        if delay is None:
            await send(writer, answer + stray)
        else:
            await send(writer, answer + stray[:cut] if chance.randrange(2) and delay == 0.0 else answer)
            await asyncio.sleep(delay)
            await send(writer, stray[cut:] if delay == 0.0 else stray)
        return chance.randrange(8) == 0


@asynccontextmanager
async def misframing(seed: int) -> AsyncIterator[Misframing]:
    """Those who ask it have closed their connections at the end."""
    backend = Misframing(seed)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
    backend.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield backend
    finally:
        server.close()
        await asyncio.wait_for(asyncio.gather(*backend.tasks), DEADLINE)


def _answer(kind: str, method: str, asked: str) -> bytes:
    named = f"X-Answers: {asked}\r\n"
    body = asked.encode()
    match kind:
        case "none":
            return f"HTTP/1.1 304 Not Modified\r\n{named}\r\n".encode()
        case "empty":
            return f"HTTP/1.1 204 No Content\r\n{named}\r\n".encode()
        case "chunks" if method != "HEAD":
            return (
                f"HTTP/1.1 200 OK\r\n{named}Transfer-Encoding: chunked\r\n\r\n".encode()
                + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            )
        case _:
            head = f"HTTP/1.1 200 OK\r\n{named}Content-Length: {len(body)}\r\n\r\n".encode()
            return head if method == "HEAD" else head + body

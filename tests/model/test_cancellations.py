"""Cancellation at every await of a request: upstream, in the client, in the server, in the proxy.

An operation is run again and again, and cancelled at its first suspension, its second, and so on until it
ends before that. After each: no task and no descriptor is left, and the next request is answered right.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from deadline import DEADLINE
from fakes.openapi_server import Reference, document, hash_of, serving
from fakes.streaming_backend import Seen
from running.open_files import OWN, needs_proc
from running.proxying_service import CHUNKED, THINGS, proxying
from running.service import Client, backend
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, Payload
from specmux_cache import AsyncSchemaCache, CacheOptions
from specmux_converters.group_versions import GroupVersion

APPS: Final = GroupVersion("apis/apps/v1")
BODY: Final = document("apps")
HASH: Final = Hash(hash_of(BODY))
POINTS_MAX: Final = 400


@dataclass
class Switch:
    """At the ``point``-th suspension, cancels the task; or, given ``cut``, its client leaves, which cancels
    it."""

    point: int
    passed: int = 0
    cut: Callable[[], None] | None = None

    @types.coroutine
    def drive(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        sent: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited = work.send(sent) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            sent, error = None, None
            self.passed += 1
            if self.passed == self.point:
                task = asyncio.current_task()
                assert task is not None
                (self.cut or task.cancel)()
            try:
                sent = yield waited
            except BaseException as raised:  # noqa: BLE001  # it is the work's
                error = raised

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await self.drive(work)


Operation = Callable[[Switch], Awaitable[None]]


@asynccontextmanager
async def upstream(answer: Callable[[BackendClient], Coroutine[Any, Any, Any]]) -> AsyncIterator[Operation]:
    """A backend's client, which is used on after each cancellation."""
    polling = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)
    async with serving(Reference({str(APPS): BODY})) as server:
        client = BackendClient(backend("b", server.url), polling=polling, limits=LimitSettings())

        async def operate(switch: Switch) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.create_task(switch.run(answer(client)))
            root = await client.root()
            assert isinstance(root, BackendRoot), root
            found = await client.document(APPS, hash=HASH, accept_gzip=True)
            assert isinstance(found, Payload), found

        try:
            yield operate
        finally:
            await client.close()


@asynccontextmanager
async def client_library(directory: Path) -> AsyncIterator[Operation]:
    reference = Reference({"api/v1": BODY})
    options = CacheOptions(directory=directory / "cache", root_ttl=0.0)
    async with serving(reference) as server, AsyncSchemaCache(server.url, options) as cache:
        number = 0

        async def operate(switch: Switch) -> None:
            nonlocal number
            number += 1
            reference.documents["api/v1"] = document(f"core {number}")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.create_task(switch.run(cache.schema("v1")))
            found = await cache.schema("v1")
            assert found.body == reference.documents["api/v1"]

        yield operate


@asynccontextmanager
async def proxied(target: str, body: bytes | None) -> AsyncIterator[Operation]:
    """A service whose client leaves in the middle of a request that is passed on."""
    async with proxying(_in_pieces) as (_, client):
        loop = asyncio.get_running_loop()

        async def operate(switch: Switch) -> None:
            def task(loop: asyncio.AbstractEventLoop, work: Any, **kwargs: Any) -> asyncio.Task[Any]:
                if work.__qualname__ == "Connection._serve" and not switch.passed:
                    switch.cut = work.cr_frame.f_locals["self"].transport.abort
                    return asyncio.Task(switch.run(work), loop=loop, **kwargs)
                return asyncio.Task(work, loop=loop, **kwargs)

            loop.set_task_factory(task)
            try:
                await _asked(client, target, body)
            finally:
                loop.set_task_factory(None)
            for _ in range(2):
                assert await _asked(client, target, body) == 200

        yield operate


async def _in_pieces(seen: Seen) -> None:
    await seen.read_body()
    await seen.write(CHUNKED)
    for _ in range(4):
        await asyncio.sleep(0.002)
        await seen.write(b"1000\r\n" + bytes(0x1000) + b"\r\n")
    await seen.write(b"0\r\n\r\n")


async def _asked(client: Client, target: str, body: bytes | None) -> int | None:
    """The status; None for a connection that was closed."""
    host, port = client.base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    method = "GET" if body is None else "PUT"
    length = b"" if body is None else b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    writer.write(
        b"%b %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b\r\n%b"
        % (method.encode(), target.encode(), length, body or b"")
    )
    try:
        async with asyncio.timeout(DEADLINE):
            answer = await reader.read()
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return int(answer.split(b" ", 2)[1]) if answer else None


OPERATIONS: Final[dict[str, Callable[[Path], Any]]] = {
    "upstream: root": lambda _: upstream(lambda client: client.root()),
    "upstream: document": lambda _: upstream(
        lambda client: client.document(APPS, hash=HASH, accept_gzip=True)
    ),
    "client": client_library,
    "server and proxy: a read": lambda _: proxied(THINGS, None),
    "server and proxy: a write": lambda _: proxied(f"{THINGS}/x", bytes(400_000)),
}
"""A context manager for each, with the operation."""


@needs_proc
@pytest.mark.parametrize("name", OPERATIONS)
async def test_nothing_is_left_of_a_request_cancelled_at_any_await(name: str, tmp_path: Path) -> None:
    async with OPERATIONS[name](tmp_path) as operate:
        await operate(Switch(0))
        before = await _held()
        for point in range(1, POINTS_MAX):
            switch = Switch(point)
            await operate(switch)
            if switch.passed < point:
                break
        else:
            raise AssertionError("it never ends")
        assert point > 2
        async with asyncio.timeout(DEADLINE):
            while (after := await _held()) > before:
                await asyncio.sleep(0.05)
        assert after <= before


async def _held() -> tuple[int, int]:
    """Tasks and descriptors."""
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()), len(list(OWN.iterdir()))

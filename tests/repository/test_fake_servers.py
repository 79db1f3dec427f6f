"""Fake servers end what came to them: pytest would blame a later test for what they left."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest
from aiohttp import web

from deadline import DEADLINE
from fakes.listening import StreamServer, WebServer
from running.ports import free_port


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


MADE = pytest.mark.parametrize(
    "made", [lambda: StreamServer(silent), lambda: WebServer(web.Application())], ids=["streams", "aiohttp"]
)


@pytest.mark.parametrize("turns", range(8))
@MADE
def test_connection_has_ended_with_its_server(
    made: Callable[[], StreamServer | WebServer], turns: int
) -> None:
    """``turns`` of the event loop before, it is not accepted, or accepted, or made, or has a handler."""
    loop = asyncio.new_event_loop()
    server = made()
    with socket.socket() as client:
        client.settimeout(DEADLINE)

        async def scenario() -> None:
            client.connect(("127.0.0.1", await server.start()))
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.stop()

        loop.run_until_complete(scenario())
        loop.close()
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""


async def cancel_after(turns: int, task: asyncio.Task[object]) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("turns", range(1, 7))
@MADE
async def test_port_is_free_after_a_cancelled_stop(
    made: Callable[[], StreamServer | WebServer], turns: int
) -> None:
    server = made()
    port = await server.start()
    await cancel_after(turns, asyncio.create_task(server.stop()))
    again = StreamServer(silent)
    assert await again.start(port) == port
    await again.stop()


@pytest.mark.parametrize("turns", range(6))
@MADE
async def test_port_is_free_after_a_cancelled_start(
    made: Callable[[], StreamServer | WebServer], turns: int
) -> None:
    server, port = made(), free_port()
    await cancel_after(turns, asyncio.create_task(server.start(port)))
    await server.stop()
    again = StreamServer(silent)
    assert await again.start(port) == port
    await again.stop()


async def test_handler_whose_client_has_gone_has_ended_with_its_server() -> None:
    begun = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    application = web.Application()
    application.router.add_get("/", hang)
    server = WebServer(application, shutdown_timeout=0.1)
    _, writer = await asyncio.open_connection("127.0.0.1", await server.start())
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await begun.wait()
    writer.close()
    await writer.wait_closed()
    await server.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}

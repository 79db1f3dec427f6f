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


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize(
    "made", [lambda: StreamServer(silent), lambda: WebServer(web.Application())], ids=["streams", "aiohttp"]
)
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

"""A silent name server costs nobody but the backends it answers for."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from deadline import DEADLINE
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.connections.addresses import DaemonResolver


def test_name_and_numbers_resolve_as_the_system_says() -> None:
    async def scenario() -> list[Any]:
        resolver = DaemonResolver()
        try:
            return [await resolver.resolve(name, 80, socket.AF_UNSPEC) for name in ("127.0.0.1", "localhost")]
        finally:
            await resolver.close()

    numeric, named = asyncio.run(scenario())
    assert [(result["host"], result["port"], result["hostname"]) for result in numeric] == [
        ("127.0.0.1", 80, "127.0.0.1")
    ]
    assert {result["host"] for result in named} <= {"127.0.0.1", "::1"}


def test_link_local_address_keeps_its_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    # No test machine has a name for one.
    info = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 80, 0, 2))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [info])
    (result,) = asyncio.run(DaemonResolver().resolve("link.example", 80, socket.AF_INET6))
    assert result["host"] == "fe80::1%2"


def test_error_of_the_look_up_arrives() -> None:
    for name, kind in (("no-such-host.invalid", OSError), (f"{'a' * 64}.invalid", (OSError, UnicodeError))):
        with pytest.raises(kind):
            asyncio.run(DaemonResolver().resolve(name))


def test_hanging_look_ups_delay_neither_the_pool_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # A resolver that really hangs cannot be had on loopback.
    answer = threading.Event()
    polling = PollingSettings(connect_timeout=0.2, total_timeout=1.0)

    def hang(*_: object, **__: object) -> list[Any]:
        answer.wait(DEADLINE)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def asked(number: int) -> Any:
        backend = Backend(name=BackendName(f"b{number}"), url=f"http://b{number}.example")
        client = BackendClient(backend, polling=polling, limits=LimitSettings())
        try:
            return await client.root()
        finally:
            await client.close()

    async def scenario() -> list[Any]:
        hanging = asyncio.gather(*(asked(number) for number in range(40)))
        await asyncio.sleep(0.05)
        assert await asyncio.to_thread(lambda: "the pool is free") == "the pool is free"
        return await hanging

    try:
        answers = asyncio.run(scenario())  # ends though every look-up still waits
        assert not answer.is_set()
        assert set(answers) == {Failure(Cause.TIMEOUT, "no connection within 0.2 s")}
    finally:
        answer.set()

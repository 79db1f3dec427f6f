"""Answers of backends on their way to clients: framing, pace, watches."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import orjson
import pytest

from deadline import DEADLINE
from fakes.streaming_backend import OK, Seen, StreamingBackend, answer_ok, saying, streaming
from integration.proxied import gauge, watch
from running.proxying_service import APPS, CHUNKED, ON, THINGS, exchange, proxying
from running.service import QUICK, backend
from running.wire_client import WireClient, connected
from specmux_aggregator.config.settings import ListenSettings


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, None, b"")),
        (b'HTTP/1.1 304 Not Modified\r\nETag: W/"a"\r\n\r\n', (304, None, b"")),
        (b"HTTP/1.1 201 Made\r\nContent-Length: 3\r\n\r\nabc", (201, "3", b"abc")),
        (b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", (409, "0", b"")),
        (CHUNKED + b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", (200, None, b"abc")),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK, (200, "2", b"{}")),
        (b"HTTP/1.1 401 Who\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n", (401, "0", b"")),
        (b"HTTP/1.1 499 \r\nContent-Length: 0\r\n\r\n", (499, "0", b"")),
    ],
)
async def test_answer_keeps_status_and_framing_and_the_connection_is_used_again(
    answer: bytes, expected: tuple[int, str | None, bytes]
) -> None:
    async with proxying(saying(answer)) as (origin, client), connected(client.base) as wire:
        for _ in range(3):
            await wire.ask(THINGS)
            head, body = await wire.answer()
            length = head.value("Content-Length")
            assert (head.status, length, body) == expected
            assert head.value("Connection") is None
            assert len(head.values("Date")) == 1
        await wire.ask("/openapi/v3")
        assert (await wire.answer())[0].status == 200
        assert len(origin.requests) == 3


async def test_head_has_the_length_and_no_body() -> None:
    async def script(seen: Seen) -> None:
        await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")

    async with proxying(script) as (_, client), connected(client.base) as wire:
        for _ in range(2):
            await wire.ask(THINGS, method="HEAD")
            answer = await wire.head()
            assert (answer.status, answer.value("Content-Length")) == (200, "99")


async def test_hop_by_hop_fields_of_an_answer_end_here() -> None:
    said = (
        b"HTTP/1.1 200 OK\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n"
        b"Set-Cookie: a=b\r\nWarning: 299 - x\r\nWarning: 299 - y\r\nAudit-Id: 7\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )

    async with proxying(saying(said)) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS)
        answer, _ = await wire.answer()
        assert answer.values("Warning") == ["299 - x", "299 - y"]
        assert answer.value("Audit-Id") == "7"
        for name in ("Connection", "X-Mine", "Keep-Alive", "Set-Cookie"):
            assert answer.values(name) == []
        await wire.ask(THINGS)
        assert (await wire.answer())[0].status == 200


async def test_answer_that_ends_with_the_connection_does_so_for_the_client() -> None:
    said = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"
    async with proxying(saying(said)) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS)
        answer = await wire.head()
        assert answer.value("Connection") == "close"
        assert await wire.body(answer) == b"abc"


async def test_old_client_gets_no_chunks() -> None:
    async with proxying(saying(CHUNKED + b"3\r\nabc\r\n0\r\n\r\n")) as (origin, client):
        async with connected(client.base) as wire:
            await wire.send(f"GET {THINGS} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".encode())
            answer = await wire.head()
            assert answer.value("Transfer-Encoding") is None
            assert await wire.body(answer) == b"abc"
        origin.script = answer_ok
        async with connected(client.base) as wire:
            for _ in range(2):
                await wire.send(f"GET {THINGS} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".encode())
                answer, body = await wire.answer()
                assert (answer.value("Connection"), body) == ("keep-alive", b"{}")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize(
    "said",
    [
        CHUNKED + b"5\r\nabcde\r\n",
        CHUNKED + b"5\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde",
    ],
)
async def test_answer_that_breaks_off_breaks_off_for_the_client(said: bytes, version: str) -> None:
    async def dies(seen: Seen) -> None:
        await seen.write(said)
        await asyncio.sleep(0.05)
        seen.writer.close()

    async with proxying(dies) as (_, client), connected(client.base) as wire:
        await wire.send(f"GET {THINGS} HTTP/{version}\r\nHost: a\r\n\r\n".encode())
        answer = await wire.head()
        assert answer.status == 200
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await wire.body(answer)
        _, _, text = await client.get("/metrics")
        assert b'specmux_backend_failures_total{backend="a",cause="truncated"} 1.0' in text


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def slow(seen: Seen) -> None:
        await seen.read_body()
        await asyncio.sleep(0.1)
        await seen.write(OK)

    one = f"POST {THINGS} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".encode()
    two = b"GET /openapi/v3 HTTP/1.1\r\nHost: a\r\n\r\n"
    three = f"GET {THINGS} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
    async with proxying(slow) as (origin, client):
        answers = await exchange(client, one, two, three)
        assert [body for _, body in answers][::2] == [b"{}", b"{}"]
        assert orjson.loads(answers[1][1])["paths"].keys() == {APPS}
        assert [seen.method for seen in origin.requests] == ["POST", "GET"]


async def test_connection_has_time_for_its_next_request_after_a_slow_answer_to_a_body() -> None:
    async def slow(seen: Seen) -> None:
        await seen.read_body()
        await asyncio.sleep(0.6)
        await seen.write(OK)

    listen = ListenSettings(port=0, header_timeout=0.3, shutdown_timeout=1.0)
    async with proxying(slow, listen=listen) as (_, client), connected(client.base) as wire:
        for _ in range(2):
            await wire.ask(THINGS, method="POST", body=b"abc")
            assert (await wire.answer())[0].status == 200
            await asyncio.sleep(0.6)


@pytest.mark.parametrize("is_half", [False, True])
async def test_client_that_leaves_a_watch_ends_it_at_the_backend(is_half: bool) -> None:
    async with proxying(watch) as (origin, client), connected(client.base) as wire:
        await wire.ask(f"{THINGS}?watch=true")
        await wire.head()
        assert await wire.chunk() == b"one"
        if is_half:
            wire.writer.write_eof()
        else:
            wire.writer.close()
        await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)
        await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)


async def test_watch_outlives_every_timeout_but_the_clients() -> None:
    async def late(seen: Seen) -> None:
        await seen.write(CHUNKED)
        for _ in range(2):
            await asyncio.sleep(2.5)
            await seen.write(b"3\r\none\r\n")
        await seen.write(b"0\r\n\r\n")

    impatient = replace(QUICK, idle_timeout=2.0, total_timeout=2.0)
    listen = ListenSettings(
        port=0, header_timeout=2.0, keepalive_timeout=2.0, write_timeout=2.0, shutdown_timeout=1.0
    )
    settings = {"polling": impatient, "listen": listen, "proxy": replace(ON, answer_timeout=2.0)}
    async with proxying(late, **settings) as (_, client), connected(client.base) as wire:
        await wire.ask(f"{THINGS}?watch=true")
        answer = await wire.head()
        assert await wire.body(answer) == b"one" * 2
        await wire.ask("/openapi/v3")
        assert (await wire.answer())[0].status == 200


async def test_client_that_reads_nothing_of_a_watch_is_cut_off() -> None:
    async def flood(seen: Seen) -> None:
        try:
            await seen.write(CHUNKED)
            while True:
                await seen.write(b"10000\r\n%b\r\n" % (b"x" * 65536))
        finally:
            seen.left.set()

    listen = ListenSettings(port=0, write_timeout=0.5, shutdown_timeout=1.0)
    async with proxying(flood, listen=listen) as (origin, client), connected(client.base) as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.ask(f"{THINGS}?watch=true")
        await client.until(lambda: len(origin.requests) == 1)
        await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)
        assert client.app.server.stats.write_stalls == 1


async def test_many_watches_do_not_keep_others_waiting() -> None:
    async def script(seen: Seen) -> None:
        await (watch(seen) if "watch" in seen.target else answer_ok(seen))

    listen = ListenSettings(port=0, header_timeout=600.0, shutdown_timeout=1.0)
    async with proxying(script, listen=listen) as (origin, client), contextlib.AsyncExitStack() as stack:
        wires: list[WireClient] = [
            await stack.enter_async_context(connected(client.base)) for _ in range(200)
        ]
        for wire in wires:
            await wire.ask(f"{THINGS}?watch=true")
        for wire in wires:
            await wire.head()
            assert await wire.chunk() == b"one"
        assert gauge(client, "specmux_proxied_requests_in_flight") == 200
        assert (await client.get(THINGS))[0] == 200
        assert (await client.get("/openapi/v3"))[0] == 200
        assert gauge(client, "specmux_proxied_requests_in_flight") == 200, "all watches go on"
        for seen in [seen for seen in origin.requests if "watch" in seen.target]:
            seen.writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        for wire in wires:
            assert await wire.chunk() == b"two"
            assert await wire.chunk() == b""
        await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)


async def test_watch_goes_on_when_its_backend_changes() -> None:
    async with (
        proxying(watch) as (origin, client),
        streaming(StreamingBackend()) as other,
        connected(client.base) as wire,
    ):
        await wire.ask(f"{THINGS}?watch=true")
        await wire.head()
        assert await wire.chunk() == b"one"
        moved = replace(client.app.settings, backends=(backend("a", other.url),))
        await client.app.reconfigure(moved)
        await client.ready()
        assert (await client.get(THINGS))[0] == 200
        assert len(other.requests) == 1
        origin.requests[0].writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
        assert await wire.chunk() == b"two"
        assert await wire.chunk() == b""
        await client.until(lambda: not origin.tasks)  # nothing keeps the old connections

"""What clients and backends could try with requests that are passed on: two readings of one message, ends
that are none, and waiting that keeps others from their answers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from deadline import DEADLINE
from fakes.streaming_backend import OK, Seen, StreamingBackend, saying, streaming
from running.proxying_service import APPS, CHUNKED, ON, THINGS, exchange, proxying, reason_of
from running.service import IMPATIENT, backend, service
from running.wire_client import WireClient, connected
from specmux_aggregator.config.settings import ListenSettings, ProxySettings

BATCH = "apis/batch/v1"
QUEUE_MAX = 32
"""Pipelined requests that aiohttp takes before it stops to read."""


def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection at once, whatever is on its way."""
    wire = writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def silent(seen: Seen) -> None:
    await seen.wait_until_left()


@pytest.mark.parametrize("coding", ["gzip, chunked", "deflate, chunked"])
async def test_transfer_coding_that_would_be_lost_is_refused(coding: str) -> None:
    async with proxying() as (origin, client):
        head = f"POST {THINGS} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n"
        answers = await exchange(client, head.encode(), b"2\r\nab\r\n0\r\n\r\n", head.encode())
        assert [answer.status for answer, _ in answers] == [501]
        assert origin.requests == []


async def test_nothing_follows_the_chunks_of_an_old_client() -> None:
    async with proxying() as (origin, client):
        head = f"POST {THINGS} HTTP/1.0\r\nConnection: keep-alive\r\n".encode()
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        answers = await exchange(client, chunked, head + b"\r\n")
        assert [(answer.status, answer.value("Connection")) for answer, _ in answers] == [(200, "close")]
        assert len(origin.requests) == 1


async def test_two_credentials_are_refused() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Authorization: Bearer a", "authorization: Bearer b")
        answer, body = await wire.answer()
        assert (answer.status, reason_of(body)) == (400, "BadRequest")
        assert b"Bearer" not in body
        assert origin.requests == []


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, chunked", b"chunked\r\nTransfer-Encoding: chunked"])
async def test_answer_with_another_transfer_coding_is_502(coding: bytes) -> None:
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %b\r\n\r\n2\r\nab\r\n0\r\n\r\n" % coding
    async with proxying(saying(said)) as (_, client):
        status, _, body = await client.get(THINGS)
        assert (status, reason_of(body)) == (502, "BadGateway")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_answer_without_length_that_is_cut_is_cut_for_the_client(version: str) -> None:
    async def dies(seen: Seen) -> None:
        await seen.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        await asyncio.sleep(0.1)
        reset(seen.writer)

    async with proxying(dies) as (_, client), connected(client.base) as wire:
        await wire.send(f"GET {THINGS} HTTP/{version}\r\nHost: a\r\n\r\n".encode())
        answer = await wire.head()
        with pytest.raises(ConnectionResetError):
            await wire.body(answer)
        _, _, text = await client.get("/metrics")
        assert b'specmux_backend_failures_total{backend="a",cause="reset"} 1.0' in text


@pytest.mark.parametrize(
    ("target", "refusal"), [("/openapi/v2", (503, "ServiceUnavailable")), (THINGS, (504, "Timeout"))]
)
async def test_interim_answers_put_nothing_off(target: str, refusal: tuple[int, str]) -> None:
    async def chatters(seen: Seen) -> None:
        while True:
            await seen.write(b"HTTP/1.1 102 Processing\r\n\r\n")
            await asyncio.sleep(0.05)

    impatient = {"polling": IMPATIENT, "proxy": ProxySettings(resources=True, answer_timeout=0.5)}
    async with proxying(chatters, **impatient) as (_, client):
        status, _, body = await client.get(target)
        assert (status, reason_of(body)) == refusal


async def test_backend_that_did_not_take_a_whole_body_reads_nobody_elses_request_as_its_rest() -> None:
    async def answers_early(seen: Seen) -> None:
        await seen.write(OK)
        if seen.method == "POST":
            await seen.reader.read()
            seen.left.set()

    async with proxying(answers_early) as (origin, client):
        async with connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 1000", method="POST")
            assert (await wire.answer())[0].status == 200
        assert (await client.get(THINGS))[0] == 200
        posted, asked = origin.requests
        assert asked.reader is not posted.reader
        await asyncio.wait_for(posted.left.wait(), DEADLINE)


async def test_silent_backend_keeps_nobody_from_the_others() -> None:
    listen = ListenSettings(port=0, max_in_flight=4, shutdown_timeout=1.0)
    async with (
        streaming(StreamingBackend(script=silent)) as quiet,
        streaming(StreamingBackend((BATCH,))) as quick,
        service(backend("a", quiet.url), backend("b", quick.url), listen=listen, proxy=ON) as client,
        AsyncExitStack() as stack,
    ):
        await client.ready()
        for _ in range(4):
            wire = await stack.enter_async_context(connected(client.base))
            await wire.ask(THINGS)
        await client.until(lambda: len(quiet.requests) == 4, "four wait")
        status, headers, body = await client.get(THINGS)
        assert (status, headers["Retry-After"]) == (429, "1")
        assert reason_of(body) == "TooManyRequests"
        assert (await client.get("/openapi/v2"))[0] == 429
        assert (await client.get(f"/{BATCH}/jobs"))[0] == 200
        assert (await client.get(f"/openapi/v3/{APPS}?hash=unknown"))[0] == 301
        assert len(quiet.requests) == 4


async def test_watches_do_not_count_as_waiting() -> None:
    async def watch(seen: Seen) -> None:
        await seen.write(CHUNKED)
        await seen.wait_until_left()

    listen = ListenSettings(port=0, max_in_flight=1, shutdown_timeout=1.0)
    async with proxying(watch, listen=listen) as (origin, client), AsyncExitStack() as stack:
        for _ in range(5):
            wire = await stack.enter_async_context(connected(client.base))
            await wire.ask(f"{THINGS}?watch=true")
            assert (await wire.head()).status == 200
        assert client.app.server.stats.in_flight == 0
        assert (await client.get(f"/openapi/v3/{APPS}?hash=unknown"))[0] == 301
        assert len(origin.requests) == 5


async def test_bodies_that_trickle_take_the_places_of_bodies_and_nobody_elses() -> None:
    listen = ListenSettings(port=0, max_in_flight=2, shutdown_timeout=1.0)
    async with proxying(listen=listen) as (_, client), AsyncExitStack() as stack:
        for _ in range(2):
            wire = await stack.enter_async_context(connected(client.base))
            await wire.ask(THINGS, "Content-Length: 1000", method="POST")
        await client.until(lambda: client.app.server.stats.in_flight == 2, "both are under way")
        async with connected(client.base) as third:
            await third.ask(THINGS, "Content-Length: 10", method="POST")
            assert (await third.head()).status == 429
        assert (await client.get(THINGS))[0] == 200


async def test_body_that_trickles_is_given_up() -> None:
    proxy = ProxySettings(resources=True, answer_timeout=0.3)
    async with proxying(proxy=proxy) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Content-Length: 1000", method="POST")
        answer = asyncio.create_task(wire.answer())
        while not answer.done():
            await wire.send(b"x")
            await asyncio.sleep(0.1)
        assert (await answer)[0].status == 408
        await client.until(lambda: client.app.server.stats.in_flight == 0, "its place is free")


async def test_body_under_way_is_taken_to_its_end_when_the_service_stops() -> None:
    listen = ListenSettings(port=0, shutdown_timeout=600.0)
    async with proxying(listen=listen) as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Content-Length: 10", method="POST")
        await wire.send(b"01234")
        await client.until(lambda: len(origin.requests) == 1, "the backend has its head")
        stopping = asyncio.create_task(client.app.server.stop())
        await asyncio.sleep(0.1)
        await wire.send(b"56789")
        answer, _ = await wire.answer()
        assert (answer.status, origin.requests[0].body) == (200, b"0123456789")
        assert await wire.at_end()
        await asyncio.wait_for(stopping, DEADLINE)


async def test_client_that_fills_the_queue_and_leaves_holds_no_backend() -> None:
    async def watch(seen: Seen) -> None:
        await seen.write(CHUNKED)
        await seen.wait_until_left()

    async with proxying(watch) as (origin, client):
        async with connected(client.base) as wire:
            await wire.ask(f"{THINGS}?watch=true")
            await wire.head()
            await wire.send(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" * (QUEUE_MAX + 1))
            await asyncio.sleep(0.2)
        await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)


async def test_client_that_sends_more_than_is_taken_and_leaves_holds_no_backend() -> None:
    async def watch(seen: Seen) -> None:
        await seen.write(CHUNKED)
        await asyncio.sleep(60)

    async with proxying(watch) as (origin, client):
        async with connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 100000000", method="POST")
            await wire.head()
            wire.writer.write(b"x" * 20_000_000)
            await asyncio.sleep(0.2)
            reset(wire.writer)
        proxied_now = client.app.metrics.proxy.in_flight
        await client.until(lambda: proxied_now._value.get() == 0, "the backend is let go")
        assert len(origin.requests) == 1


async def test_large_answers_and_watches_stream_over_tls(tmp_path: Path) -> None:
    body = bytes(range(256)) * 4096

    async def answers(seen: Seen) -> None:
        if "watch" not in seen.target:
            await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            return
        await seen.write(CHUNKED)
        for number in range(10):
            await seen.write(b"1\r\n%d\r\n" % number)
            await asyncio.sleep(0.02)
        await seen.wait_until_left()

    authority, file = trustme.CA(), tmp_path / "tls.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    listen = ListenSettings(port=0, shutdown_timeout=1.0, tls_cert_file=file)
    async with proxying(answers, listen=listen) as (origin, client):
        port = urlsplit(client.base).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, limit=1 << 21)
        wire = WireClient(reader, writer)
        for _ in range(3):
            await wire.ask(THINGS)
            assert (await wire.answer())[1] == body
        await wire.ask(f"{THINGS}?watch=true")
        await wire.head()
        assert [await wire.chunk() for _ in range(10)] == [b"%d" % number for number in range(10)]
        writer.close()
        await asyncio.wait_for(origin.requests[-1].left.wait(), DEADLINE)

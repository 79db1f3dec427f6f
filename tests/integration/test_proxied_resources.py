"""Requests that backends answer, through the whole service: bytes in, bytes out, and what happens when either
side stops."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import trustme

from fakes.streaming_backend import OK, Seen, StreamingBackend, streaming
from integration.proxied import resident
from running.proxying_service import APPS, CHUNKED, ON, THINGS, exchange, proxying, reason_of
from running.service import backend, service
from running.wire_client import connected
from specmux_aggregator.config.settings import ProxySettings
from specmux_cache.access.server_access import Credentials, ServerTLS


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_resources_are_answered_as_anything_unknown_while_the_switch_is_off(method: str) -> None:
    async with proxying(proxy=ProxySettings()) as (origin, client):
        unknown = await client.get("/nothing/at/all/here", method=method)
        answer = await client.get(THINGS, method=method)
        assert (answer[0], answer[2]) == (unknown[0], unknown[2])
        assert answer[0] == 404
        assert origin.requests == []


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_resource_request_arrives_as_it_was_sent(method: str) -> None:
    target = THINGS + "/%C3%A4;b=c%2Fd?watch=0&fieldSelector=a%3Db,c+d&x=%2e%2e/y?"
    body = b'{"a": 1}' * 20

    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(
            target,
            "Authorization: Bearer theirs",
            "Accept: application/json;as=Table, application/json",
            "Content-Type: application/apply-patch+yaml",
            "Impersonate-User: jane",
            "X-Remote-User: root",
            "Cookie: a=b",
            "Connection: X-Private",
            "X-Private: 1",
            "X-Forwarded-For: 10.9.8.7",
            method=method,
            body=body,
        )
        answer, content = await wire.answer()
        assert (answer.status, content) == (200, b"{}")
        assert answer.value("Via") == "1.1 specmux"
        (seen,) = origin.requests
        assert (seen.method, seen.target, seen.body) == (method, target, body)
        assert seen.values("Authorization") == ["Bearer theirs"]
        assert seen.values("Accept") == ["application/json;as=Table, application/json"]
        assert seen.values("Impersonate-User") == ["jane"]
        assert seen.values("Host") == [origin.url.removeprefix("http://")]
        assert seen.values("X-Forwarded-For") == ["127.0.0.1"]
        assert not {"x-remote-user", "cookie", "connection", "x-private"} & seen.names()
        assert "accept-encoding" not in seen.names()


async def test_our_credentials_go_with_no_resource_request(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("specmux").private_key_and_cert_chain_pem.write_to_path(tmp_path / "us.pem")
    (tmp_path / "token").write_text("ours")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    tls = ServerTLS(ca_file=tmp_path / "ca.pem", cert_file=tmp_path / "us.pem", server_name="localhost")
    ours = Credentials(
        token_file=tmp_path / "token",
        remote_user="system:specmux",
        impersonation=(("Impersonate-User", "somebody"),),
    )

    async with (
        streaming(StreamingBackend(), tls=context) as origin,
        service(backend("a", origin.url, tls=tls, credentials=ours), proxy=ON) as client,
    ):
        await client.ready()
        assert (await client.get("/openapi/v2"))[0] == 200
        assert (await client.get(THINGS))[0] == 200
        assert (await client.get(THINGS, Authorization="Bearer theirs"))[0] == 200
        swagger_, anonymous, theirs = origin.requests
        assert swagger_.values("Authorization") == ["Bearer ours"]
        assert not {"authorization", "x-remote-user", "impersonate-user"} & anonymous.names()
        assert theirs.values("Authorization") == ["Bearer theirs"]
        for target, certificate in origin.peer_certificates:
            assert bool(certificate) == (not target.startswith(THINGS))


async def test_backend_whose_certificate_is_not_trusted_any_more_gets_no_token(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ServerTLS(ca_file=tmp_path / "ca.pem", server_name="localhost")

    async with (
        streaming(StreamingBackend(), tls=context) as origin,
        service(backend("a", origin.url, tls=tls), proxy=ON) as client,
    ):
        await client.ready()
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
        status, headers, body = await client.get(THINGS, Authorization="Bearer theirs")
        assert (status, headers["Retry-After"], reason_of(body)) == (503, "1", "ServiceUnavailable")
        assert "bad_tls" in orjson.loads(body)["message"]
        assert origin.requests == []


@pytest.mark.parametrize(
    "target",
    [
        f"/{APPS}/../x",
        f"/{APPS}/%2e%2e/x",
        f"/{APPS}/a%2F..%2Fb",
        f"/{APPS}/x%00y",
        f"/{APPS}/x%0d%0aX:y",
        f"/{APPS}/%zz",
        f"http://elsewhere/{APPS}/%2e%2e/x",
    ],
)
async def test_path_that_could_be_read_otherwise_reaches_nobody(target: str) -> None:
    async with proxying() as (origin, client):
        ((answer, body),) = await exchange(client, f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert (answer.status, reason_of(body)) == (400, "BadRequest")
        assert origin.requests == []


async def test_absolute_target_loses_its_origin() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(f"http://elsewhere.example{THINGS}?a=b")
        assert (await wire.answer())[0].status == 200
        assert origin.requests[0].target == f"{THINGS}?a=b"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"Content-Length: +5\r\n\r\nabcde",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"X: y\r\n\tfolded\r\nContent-Length : 3\r\n\r\nabc",
    ],
)
async def test_two_readings_of_one_request_are_refused(framing: bytes) -> None:
    async with proxying() as (origin, client):
        answers = await exchange(client, f"POST {THINGS} HTTP/1.1\r\nHost: a\r\n".encode(), framing)
        assert [answer.status for answer, _ in answers] == [400]
        assert origin.requests == []


async def test_chunked_body_stays_chunked_and_loses_its_trailers() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.send(
            f"POST {THINGS} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Remote-User: root\r\n\r\n".encode()
        )
        assert (await wire.answer())[0].status == 200
        await wire.ask(THINGS)
        assert (await wire.answer())[0].status == 200
        first, second = origin.requests
        assert first.body == b"abcde"
        assert first.values("Transfer-Encoding") == ["chunked"]
        assert not {"content-length", "trailer", "x-remote-user"} & first.names()
        assert "x-remote-user" not in second.names()
        assert first.writer is second.writer


async def test_body_that_is_expected_to_be_asked_for_is_asked_for() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Expect: 100-continue", "Content-Length: 3", method="PUT")
        assert (await wire.head()).status == 100
        await wire.send(b"abc")
        assert (await wire.answer())[0].status == 200
        assert origin.requests[0].body == b"abc"
        assert "expect" not in origin.requests[0].names()
        await wire.ask(THINGS, "Expect: 100-continue", method="PUT", body=b"abc")
        assert (await wire.answer())[0].status == 200  # the body was there already


async def test_body_that_breaks_its_framing_is_400_and_cut_for_the_backend() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Transfer-Encoding: chunked", method="POST")
        await wire.send(b"3\r\nabc\r\n")
        await client.until(lambda: len(origin.requests) == 1)
        await wire.send(b"nonsense\r\n")
        answer, body = await wire.answer()
        assert (answer.status, reason_of(body)) == (400, "BadRequest")
        assert await wire.at_end()
        await client.until(lambda: origin.requests[0].is_cut)


async def test_body_that_stops_coming_is_408_and_a_slow_one_is_taken() -> None:
    async with proxying(proxy=replace(ON, answer_timeout=3.0)) as (origin, client):
        async with connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 8", method="POST")
            for _ in range(8):
                await asyncio.sleep(0.5)
                await wire.send(b"x")
            assert (await wire.answer())[0].status == 200
            assert origin.requests[0].body == b"x" * 8
        async with connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 8", method="POST")
            await wire.send(b"x")
            answer, body = await wire.answer()
            assert (answer.status, reason_of(body)) == (408, "Timeout")
            assert await wire.at_end()
        await client.until(lambda: origin.requests[1].is_cut)


async def test_backend_has_its_time_from_the_end_of_a_body_on() -> None:
    async def slow(seen: Seen) -> None:
        await seen.read_body()
        await asyncio.sleep(2.0)
        await seen.write(OK)

    async with (
        proxying(slow, proxy=replace(ON, answer_timeout=3.0)) as (_, client),
        connected(client.base) as wire,
    ):
        await wire.ask(THINGS, "Transfer-Encoding: chunked", method="POST")
        await wire.send(b"3\r\nabc\r\n")
        await asyncio.sleep(2.0)
        await wire.send(b"0\r\n\r\n")
        assert (await wire.answer())[0].status == 200


async def test_answer_may_begin_while_the_body_comes() -> None:
    async def echoes(seen: Seen) -> None:
        await seen.write(CHUNKED)
        while (size := int(await seen.reader.readline(), 16)) > 0:
            piece = await seen.reader.readexactly(size + 2)
            await seen.write(b"%x\r\n%b" % (size, piece))
        await seen.write(b"0\r\n\r\n")

    async with proxying(echoes) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Transfer-Encoding: chunked", method="POST")
        assert (await wire.head()).status == 200
        for _ in range(3):
            await wire.send(b"3\r\nabc\r\n")
            assert await wire.chunk() == b"abc"
        await wire.send(b"0\r\n\r\n")
        assert await wire.chunk() == b""
        assert await wire.at_end()


async def test_backend_that_dies_while_a_body_comes_is_502_whoever_was_waited_for() -> None:
    async def dies(seen: Seen) -> None:
        await seen.reader.readexactly(1)
        seen.writer.transport.abort()  # type: ignore[attr-defined]

    async with proxying(dies) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Content-Length: 8", method="POST")
        await wire.send(b"x")
        answer, body = await wire.answer()
        assert (answer.status, reason_of(body)) == (502, "BadGateway")
        assert await wire.at_end()


async def test_upload_waits_for_the_backend_and_costs_no_memory() -> None:
    size = 64 * 2**20

    gate, peak = asyncio.Event(), 0

    async def slow(seen: Seen) -> None:
        await gate.wait()
        taken = 0
        while taken < size:
            taken += len(await seen.reader.read(1 << 20))
        seen.body = b"%d" % taken
        await seen.write(OK)

    async with proxying(slow) as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS, f"Content-Length: {size}", method="POST")
        piece, sent, before = b"x" * 2**18, 0, resident()
        stalled_at = None
        while sent < size:
            wire.writer.write(piece)
            sent += len(piece)
            while wire.writer.transport.get_write_buffer_size() > 2**18:
                if stalled_at is None and not gate.is_set():
                    done, _ = await asyncio.wait([asyncio.ensure_future(wire.writer.drain())], timeout=0.5)
                    if not done:
                        stalled_at = sent
                        gate.set()
                await asyncio.sleep(0)
            peak = max(peak, resident())
        assert (await wire.answer())[0].status == 200
        assert origin.requests[0].body == b"%d" % size
        assert stalled_at is not None
        assert stalled_at < size / 2
        assert peak - before < 16 * 2**20


async def test_answer_waits_for_the_client_and_costs_no_memory() -> None:
    size = 64 * 2**20

    written = 0

    async def large(seen: Seen) -> None:
        nonlocal written
        await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while written < size:
            await seen.write(b"x" * 2**18)
            written += 2**18

    async with proxying(large) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS)
        answer = await wire.head()
        last = -1
        while written != last:
            last = written
            await asyncio.sleep(0.3)
        assert written < size / 2
        before, peak, read = resident(), 0, 0
        while read < size:
            read += len(await wire.reader.read(1 << 20))
            peak = max(peak, resident())
        assert answer.value("Content-Length") == str(size)
        assert peak - before < 16 * 2**20

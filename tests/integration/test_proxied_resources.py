"""Requests that backends answer, through the whole service: bytes in, bytes out, and what happens when either
side stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import ssl
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from fakes.streaming_backend import OK, Seen, StreamingBackend, answer_ok, saying, streaming
from running.cluster_service import METRICS, WIDGETS, builtin, definition, extension, until_ready
from running.cluster_service import owner as owner_in
from running.proxying_service import APPS, CHUNKED, ON, THINGS, exchange, proxying, reason_of
from running.service import QUICK, Client, backend, directory, service
from running.wire_client import WireClient, connected
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.config.settings import Kubernetes, Limits, Listen, Proxy
from specmux_aggregator.model.backend import BackendTLS, Credentials
from specmux_converters.group_versions import GroupVersion

# /openapi/v2


def test_swagger_is_passed_through_with_its_validators() -> None:
    async def scenario() -> None:
        origin = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
        async with serving(origin), service(backend("a", origin.url)) as client:
            await client.ready()
            status, headers, body = await client.get("/openapi/v2?timeout=32s", Accept="application/json")
            assert (status, body) == (200, swagger(APPS))
            assert headers["Content-Type"] == "application/json"
            assert origin.log[-1] == "/openapi/v2"
            etag = headers["ETag"]
            status, headers, body = await client.get("/openapi/v2", If_None_Match=etag)
            assert (status, headers["ETag"], body) == (304, etag, b"")
            status, headers, body = await client.get("/openapi/v2", Accept_Encoding="gzip")
            assert (status, headers["Content-Encoding"], body[:2]) == (200, "gzip", b"\x1f\x8b")
            status, headers, body = await client.get("/openapi/v2", method="HEAD")
            assert (status, body) == (200, b"")
            assert int(headers["Content-Length"]) == len(swagger(APPS))

    asyncio.run(scenario())


def test_swagger_is_asked_for_with_our_credentials_and_none_of_the_clients(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "token").write_text("ours")
        ours = Credentials(token_file=tmp_path / "token", remote_user="system:specmux")
        origin = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
        async with serving(origin), service(backend("a", origin.url, credentials=ours)) as client:
            await client.ready()
            await client.get(
                "/openapi/v2", Authorization="Bearer theirs", Cookie="a=b", X_Remote_User="root", X_Other="1"
            )
            sent = origin.headers[-1]
            assert sent["Authorization"] == "Bearer ours"
            assert sent["X-Remote-User"] == "system:specmux"
            assert not {"Cookie", "X-Other"} & sent.keys()

    asyncio.run(scenario())


def test_swagger_comes_from_the_first_that_has_it() -> None:
    async def scenario() -> None:
        without = FakeAPIServer({APPS: document(APPS)})
        gone = FakeAPIServer(None, swagger("apis/gone/v1"))
        second, third = FakeAPIServer(None, swagger("apis/b/v1")), FakeAPIServer(None, swagger("apis/c/v1"))
        async with serving(without), serving(gone), serving(second), serving(third):
            backends = [
                backend("a", without.url, priority=9),
                backend("gone", gone.url, priority=8),
                backend("b", second.url, priority=7),
                backend("c", third.url, priority=6),
            ]
            async with service(*backends, polling=replace(QUICK, interval=60)) as client:
                await client.ready()
                await gone.stop()
                assert (await client.get("/openapi/v2"))[2] == swagger("apis/b/v1")
                asked = without.count("/openapi/v2")
                assert (await client.get("/openapi/v2"))[2] == swagger("apis/b/v1")
                assert without.count("/openapi/v2") == asked  # the choice is remembered
                await second.stop()
                assert (await client.get("/openapi/v2"))[2] == swagger("apis/c/v1")

    asyncio.run(scenario())


def test_swagger_that_nobody_has_is_404_and_503_where_somebody_could_not_be_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        one = FakeAPIServer({APPS: document(APPS)})
        two = FakeAPIServer({"apis/b/v1": document("apis/b/v1")})
        slow = replace(QUICK, interval=60)
        async with (
            serving(one),
            serving(two),
            service(
                backend("a", one.url), backend("b", two.url), directory("d", tmp_path), polling=slow
            ) as client,
        ):
            await client.ready()
            status, _, body = await client.get("/openapi/v2")
            assert (status, reason_of(body)) == (404, "NotFound")
            await two.stop()
            status, headers, body = await client.get("/openapi/v2")
            assert (status, reason_of(body), headers["Retry-After"]) == (503, "ServiceUnavailable", "1")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n", "redirected"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "server_error"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "credentials"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "too_large"),
        (b"HTTP/1.1 200 OK\r\nETag: a\x01b\r\nContent-Length: 0\r\n\r\n", "bad_body"),
        (b"nonsense\r\n\r\n", "bad_body"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "unexpected_status"),
    ],
)
def test_swagger_that_cannot_be_passed_on_is_our_error(answer: bytes, cause: str) -> None:
    async def scenario() -> None:
        limits = Limits(max_document_bytes=1000)
        async with proxying(saying(answer), limits=limits) as (_, client):
            status, headers, body = await client.get("/openapi/v2")
            assert status in (502, 503)
            assert cause in orjson.loads(body)["message"]
            assert "Location" not in headers
            assert b"evil" not in body

    asyncio.run(scenario())


def test_swagger_longer_than_allowed_is_cut() -> None:
    async def scenario() -> None:
        large = CHUNKED + b"200\r\n%b\r\n" % (b"x" * 512) * 4 + b"0\r\n\r\n"
        async with (
            proxying(saying(large), limits=Limits(max_document_bytes=1000)) as (_, client),
            connected(client.base) as wire,
        ):
            await wire.ask("/openapi/v2")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await wire.answer()

    asyncio.run(scenario())


def test_swagger_goes_to_a_client_that_closed_its_side() -> None:
    async def scenario() -> None:
        async with proxying() as (_, client), connected(client.base) as wire:
            await wire.ask("/openapi/v2")
            wire.writer.write_eof()
            assert (await wire.answer())[0].status == 200
            assert await wire.at_end()

    asyncio.run(scenario())


def test_swagger_of_a_silent_backend_is_504_and_one_that_stalls_is_cut() -> None:
    async def scenario() -> None:
        async def silent(seen: Seen) -> None:
            await seen.wait_until_left()

        async def stalls(seen: Seen) -> None:
            await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            await seen.wait_until_left()

        async with proxying(silent) as (origin, client):
            status, _, body = await client.get("/openapi/v2")
            assert (status, reason_of(body)) == (504, "Timeout")
            origin.script = stalls
            async with connected(client.base) as wire:
                await wire.ask("/openapi/v2")
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await wire.body(await wire.head())

    asyncio.run(scenario())


# resources: what goes on


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_resources_are_answered_as_anything_unknown_while_the_switch_is_off(method: str) -> None:
    async def scenario() -> None:
        async with proxying(proxy=Proxy()) as (origin, client):
            unknown = await client.get("/nothing/at/all/here", method=method)
            answer = await client.get(THINGS, method=method)
            assert (answer[0], answer[2]) == (unknown[0], unknown[2])
            assert answer[0] == 404
            assert origin.requests == []

    asyncio.run(scenario())


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_resource_request_arrives_as_it_was_sent(method: str) -> None:
    target = THINGS + "/%C3%A4;b=c%2Fd?watch=0&fieldSelector=a%3Db,c+d&x=%2e%2e/y?"
    body = b'{"a": 1}' * 20

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_our_credentials_go_with_no_resource_request(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("specmux").private_key_and_cert_chain_pem.write_to_path(tmp_path / "us.pem")
    (tmp_path / "token").write_text("ours")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    tls = BackendTLS(ca_file=tmp_path / "ca.pem", cert_file=tmp_path / "us.pem", server_name="localhost")
    ours = Credentials(
        token_file=tmp_path / "token",
        remote_user="system:specmux",
        impersonation=(("Impersonate-User", "somebody"),),
    )

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_backend_whose_certificate_is_not_trusted_any_more_gets_no_token(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = BackendTLS(ca_file=tmp_path / "ca.pem", server_name="localhost")

    async def scenario() -> None:
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

    asyncio.run(scenario())


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
def test_path_that_could_be_read_otherwise_reaches_nobody(target: str) -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client):
            ((answer, body),) = await exchange(client, f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert (answer.status, reason_of(body)) == (400, "BadRequest")
            assert origin.requests == []

    asyncio.run(scenario())


def test_absolute_target_loses_its_origin() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client), connected(client.base) as wire:
            await wire.ask(f"http://elsewhere.example{THINGS}?a=b")
            assert (await wire.answer())[0].status == 200
            assert origin.requests[0].target == f"{THINGS}?a=b"

    asyncio.run(scenario())


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
def test_two_readings_of_one_request_are_refused(framing: bytes) -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client):
            answers = await exchange(client, f"POST {THINGS} HTTP/1.1\r\nHost: a\r\n".encode(), framing)
            assert [answer.status for answer, _ in answers] == [400]
            assert origin.requests == []

    asyncio.run(scenario())


def test_chunked_body_stays_chunked_and_loses_its_trailers() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_body_that_is_expected_to_be_asked_for_is_asked_for() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client), connected(client.base) as wire:
            await wire.ask(THINGS, "Expect: 100-continue", "Content-Length: 3", method="PUT")
            assert (await wire.head()).status == 100
            await wire.send(b"abc")
            assert (await wire.answer())[0].status == 200
            assert origin.requests[0].body == b"abc"
            assert "expect" not in origin.requests[0].names()
            await wire.ask(THINGS, "Expect: 100-continue", method="PUT", body=b"abc")
            assert (await wire.answer())[0].status == 200  # the body was there already

    asyncio.run(scenario())


def test_body_that_breaks_its_framing_is_400_and_cut_for_the_backend() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client), connected(client.base) as wire:
            await wire.ask(THINGS, "Transfer-Encoding: chunked", method="POST")
            await wire.send(b"3\r\nabc\r\n")
            await client.until(lambda: len(origin.requests) == 1)
            await wire.send(b"nonsense\r\n")
            answer, body = await wire.answer()
            assert (answer.status, reason_of(body)) == (400, "BadRequest")
            assert await wire.at_end()
            await client.until(lambda: origin.requests[0].is_cut)

    asyncio.run(scenario())


def test_body_that_stops_coming_is_408_and_a_slow_one_is_taken() -> None:
    async def scenario() -> None:
        patient = replace(ON, answer_timeout=0.4)
        async with proxying(proxy=patient) as (origin, client):
            async with connected(client.base) as wire:
                await wire.ask(THINGS, "Content-Length: 8", method="POST")
                for _ in range(8):
                    await asyncio.sleep(0.1)
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

    asyncio.run(scenario())


def test_backend_has_its_time_from_the_end_of_a_body_on() -> None:
    async def scenario() -> None:
        async def slow(seen: Seen) -> None:
            await seen.read_body()
            await asyncio.sleep(0.3)
            await seen.write(OK)

        patient = replace(ON, answer_timeout=0.5)
        async with proxying(slow, proxy=patient) as (_, client), connected(client.base) as wire:
            await wire.ask(THINGS, "Transfer-Encoding: chunked", method="POST")
            await wire.send(b"3\r\nabc\r\n")
            await asyncio.sleep(0.4)
            await wire.send(b"0\r\n\r\n")
            assert (await wire.answer())[0].status == 200

    asyncio.run(scenario())


def test_answer_may_begin_while_the_body_comes() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_backend_that_dies_while_a_body_comes_is_502_whoever_was_waited_for() -> None:
    async def scenario() -> None:
        async def dies(seen: Seen) -> None:
            await seen.reader.readexactly(1)
            seen.writer.transport.abort()  # type: ignore[attr-defined]

        async with proxying(dies) as (_, client), connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 8", method="POST")
            await wire.send(b"x")
            answer, body = await wire.answer()
            assert (answer.status, reason_of(body)) == (502, "BadGateway")
            assert await wire.at_end()

    asyncio.run(scenario())


def test_upload_waits_for_the_backend_and_costs_no_memory() -> None:
    size = 64 * 2**20

    async def scenario() -> None:
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
                        done, _ = await asyncio.wait(
                            [asyncio.ensure_future(wire.writer.drain())], timeout=0.5
                        )
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

    asyncio.run(scenario())


def test_answer_waits_for_the_client_and_costs_no_memory() -> None:
    size = 64 * 2**20

    async def scenario() -> None:
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

    asyncio.run(scenario())


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


# resources: how answers come back


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
def test_answer_keeps_status_and_framing_and_the_connection_is_used_again(
    answer: bytes, expected: tuple[int, str | None, bytes]
) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_head_has_the_length_and_no_body() -> None:
    async def scenario() -> None:
        async def script(seen: Seen) -> None:
            await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")

        async with proxying(script) as (_, client), connected(client.base) as wire:
            for _ in range(2):
                await wire.ask(THINGS, method="HEAD")
                answer = await wire.head()
                assert (answer.status, answer.value("Content-Length")) == (200, "99")

    asyncio.run(scenario())


def test_hop_by_hop_fields_of_an_answer_end_here() -> None:
    said = (
        b"HTTP/1.1 200 OK\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n"
        b"Set-Cookie: a=b\r\nWarning: 299 - x\r\nWarning: 299 - y\r\nAudit-Id: 7\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )

    async def scenario() -> None:
        async with proxying(saying(said)) as (_, client), connected(client.base) as wire:
            await wire.ask(THINGS)
            answer, _ = await wire.answer()
            assert answer.values("Warning") == ["299 - x", "299 - y"]
            assert answer.value("Audit-Id") == "7"
            for name in ("Connection", "X-Mine", "Keep-Alive", "Set-Cookie"):
                assert answer.values(name) == []
            await wire.ask(THINGS)
            assert (await wire.answer())[0].status == 200

    asyncio.run(scenario())


def test_answer_that_ends_with_the_connection_does_so_for_the_client() -> None:
    async def scenario() -> None:
        said = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"
        async with proxying(saying(said)) as (_, client), connected(client.base) as wire:
            await wire.ask(THINGS)
            answer = await wire.head()
            assert answer.value("Connection") == "close"
            assert await wire.body(answer) == b"abc"

    asyncio.run(scenario())


def test_old_client_gets_no_chunks() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize(
    "said",
    [
        CHUNKED + b"5\r\nabcde\r\n",
        CHUNKED + b"5\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde",
    ],
)
def test_answer_that_breaks_off_breaks_off_for_the_client(said: bytes, version: str) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_connection_has_time_for_its_next_request_after_a_slow_answer_to_a_body() -> None:
    async def scenario() -> None:
        async def slow(seen: Seen) -> None:
            await seen.read_body()
            await asyncio.sleep(0.6)
            await seen.write(OK)

        listen = Listen(port=0, header_timeout=0.3, shutdown_timeout=1.0)
        async with proxying(slow, listen=listen) as (_, client), connected(client.base) as wire:
            for _ in range(2):
                await wire.ask(THINGS, method="POST", body=b"abc")
                assert (await wire.answer())[0].status == 200
                await asyncio.sleep(0.6)

    asyncio.run(scenario())


# streams without an end


async def watch(seen: Seen) -> None:
    """The head, one event, and silence."""
    await seen.write(CHUNKED + b"3\r\none\r\n")
    await seen.wait_until_left()


@pytest.mark.parametrize("is_half", [False, True])
def test_client_that_leaves_a_watch_ends_it_at_the_backend(is_half: bool) -> None:
    async def scenario() -> None:
        async with proxying(watch) as (origin, client), connected(client.base) as wire:
            await wire.ask(f"{THINGS}?watch=true")
            await wire.head()
            assert await wire.chunk() == b"one"
            left = time.monotonic()
            if is_half:
                wire.writer.write_eof()
            else:
                wire.writer.close()
            await asyncio.wait_for(origin.requests[0].left.wait(), 5)
            assert time.monotonic() - left < 1.0
            await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)

    asyncio.run(scenario())


def test_watch_outlives_every_timeout_but_the_clients() -> None:
    async def scenario() -> None:
        async def late(seen: Seen) -> None:
            await seen.write(CHUNKED)
            for _ in range(3):
                await asyncio.sleep(1.0)
                await seen.write(b"3\r\none\r\n")
            await seen.write(b"0\r\n\r\n")

        impatient = replace(QUICK, idle_timeout=0.2, total_timeout=0.5)
        listen = Listen(
            port=0, header_timeout=0.3, keepalive_timeout=0.5, write_timeout=0.5, shutdown_timeout=1.0
        )
        settings = {"polling": impatient, "listen": listen, "proxy": replace(ON, answer_timeout=0.5)}
        async with proxying(late, **settings) as (_, client), connected(client.base) as wire:
            await wire.ask(f"{THINGS}?watch=true")
            answer = await wire.head()
            assert await wire.body(answer) == b"one" * 3
            await wire.ask("/openapi/v3")
            assert (await wire.answer())[0].status == 200

    asyncio.run(scenario())


def test_client_that_reads_nothing_of_a_watch_is_cut_off() -> None:
    async def scenario() -> None:
        async def flood(seen: Seen) -> None:
            try:
                await seen.write(CHUNKED)
                while True:
                    await seen.write(b"10000\r\n%b\r\n" % (b"x" * 65536))
            finally:
                seen.left.set()

        listen = Listen(port=0, write_timeout=0.5, shutdown_timeout=1.0)
        async with proxying(flood, listen=listen) as (origin, client), connected(client.base) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await wire.ask(f"{THINGS}?watch=true")
            await client.until(lambda: len(origin.requests) == 1)
            await asyncio.wait_for(origin.requests[0].left.wait(), 10)
            assert client.app.server.stats.write_stalls == 1

    asyncio.run(scenario())


def test_many_watches_do_not_keep_others_waiting() -> None:
    async def scenario() -> None:
        async def script(seen: Seen) -> None:
            await (watch(seen) if "watch" in seen.target else answer_ok(seen))

        async with proxying(script) as (origin, client), contextlib.AsyncExitStack() as stack:
            wires: list[WireClient] = [
                await stack.enter_async_context(connected(client.base)) for _ in range(200)
            ]
            for wire in wires:
                await wire.ask(f"{THINGS}?watch=true")
            for wire in wires:
                await wire.head()
                assert await wire.chunk() == b"one"
            assert gauge(client, "specmux_proxied_requests_in_flight") == 200
            started = time.monotonic()
            assert (await client.get(THINGS))[0] == 200
            assert (await client.get("/openapi/v3"))[0] == 200
            assert time.monotonic() - started < 1.0
            for seen in [seen for seen in origin.requests if "watch" in seen.target]:
                seen.writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
            for wire in wires:
                assert await wire.chunk() == b"two"
                assert await wire.chunk() == b""
            await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)

    asyncio.run(scenario())


def test_watch_goes_on_when_its_backend_changes() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def gauge(client: Client, name: str) -> float:
    value = client.app.metrics.registry.get_sample_value(name)
    assert value is not None
    return value


# what is not passed on


@pytest.mark.parametrize(
    ("protocol", "method"), [("websocket", "GET"), ("SPDY/3.1", "POST"), ("SPDY/3.1", "GET"), ("h2c", "GET")]
)
def test_upgrade_is_refused_with_advice(protocol: str, method: str) -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client):
            sent = (
                f"{method} {THINGS}/x/exec?command=sh HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                f"Upgrade: {protocol}\r\n\r\n"
            )
            ((answer, body),) = await exchange(client, sent.encode(), b"\x80\x03\x00\x01")
            assert (answer.status, reason_of(body)) == (501, "NotImplemented")
            assert "apiserver" in orjson.loads(body)["message"]
            assert origin.requests == []

    asyncio.run(scenario())


def test_trace_is_refused() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client):
            status, _, _ = await client.get(THINGS, method="TRACE")
            assert status == 405
            assert origin.requests == []

    asyncio.run(scenario())


def test_clients_known_by_certificate_are_told_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client):
            monkeypatch.setattr(client.app._proxy_handler, "_clients_have_certificates", True)
            status, _, body = await client.get(THINGS)
            assert (status, reason_of(body)) == (501, "NotImplemented")
            assert origin.requests == []
            assert (await client.get("/openapi/v2"))[0] == 200

    asyncio.run(scenario())


def owner(publisher: Publisher) -> str:
    return publisher.current.entries[GroupVersion(APPS)].owner


def test_circle_is_broken() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client), proxying() as (_, other):
            for one, two in ((client, other), (other, client)):
                moved = (backend("b", two.base, priority=1),)
                await one.app.reconfigure(
                    replace(one.app.settings, backends=(*one.app.settings.backends, *moved))
                )
            entries = [one.app.publisher for one in (client, other)]
            await client.until(lambda: all(item.current.entries[APPS].owner == "b" for item in entries))  # type: ignore[index]
            status, _, body = await client.get(THINGS)
            assert (status, reason_of(body)) == (508, "LoopDetected")
            status, _, body = await client.get("/openapi/v2")
            assert (status, reason_of(body)) == (502, "BadGateway")
            assert origin.requests == []

    asyncio.run(scenario())


def test_resources_of_nobody_and_of_a_directory_are_404(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "apis/files.io").mkdir(parents=True)
        (tmp_path / "apis/files.io/v1.json").write_bytes(document("apis/files.io/v1"))
        async with service(directory("d", tmp_path), proxy=ON) as client:
            await client.ready()
            for group_version in ("apis/files.io/v1", "apis/none/v1"):
                status, _, body = await client.get(f"/{group_version}/things", method="POST")
                assert (status, reason_of(body)) == (404, "NotFound")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("said", "status", "cause"),
    [
        (b"HTTP/1.1 307 Go\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n", 502, "redirected"),
        (b"nonsense\r\n\r\n", 502, "bad_body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502, "bad_body"),
        (b"HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 502, "unexpected_status"),
        (b"HTTP/1.1 200 OK\r\nX: a\x01\r\nContent-Length: 0\r\n\r\n", 502, "bad_body"),
    ],
)
def test_answer_that_must_not_be_passed_on_is_502(said: bytes, status: int, cause: str) -> None:
    async def scenario() -> None:
        async with proxying(saying(said)) as (origin, client):
            answer = await client.get(THINGS)
            assert (answer[0], reason_of(answer[2])) == (status, "BadGateway")
            assert cause in orjson.loads(answer[2])["message"]
            assert "Location" not in answer[1]
            origin.script = answer_ok
            assert (await client.get(THINGS))[0] == 200

    asyncio.run(scenario())


def test_silent_backend_is_504_and_one_that_hangs_up_is_502() -> None:
    async def scenario() -> None:
        async def silent(seen: Seen) -> None:
            await seen.wait_until_left()

        async def hangs_up(seen: Seen) -> None:
            seen.writer.close()

        async with proxying(silent, proxy=replace(ON, answer_timeout=0.3)) as (origin, client):
            status, headers, body = await client.get(THINGS)
            assert (status, reason_of(body)) == (504, "Timeout")
            await asyncio.wait_for(origin.requests[0].left.wait(), 5)
            origin.script = hangs_up
            status, headers, body = await client.get(THINGS, method="POST")
            assert (status, reason_of(body)) == (502, "BadGateway")
            assert "Retry-After" not in headers  # it may have been done

    asyncio.run(scenario())


def test_lost_backend_is_503_logged_once_and_once_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        origin = FakeAPIServer({APPS: document(APPS)})
        slow = replace(QUICK, interval=60)
        async with serving(origin), service(backend("a", origin.url), proxy=ON, polling=slow) as client:
            await client.ready()
            await origin.stop()
            for _ in range(3):
                status, headers, body = await client.get(THINGS)
                assert (status, headers["Retry-After"]) == (503, "1")
                assert reason_of(body) == "ServiceUnavailable"
            await origin.start()
            assert (await client.get(THINGS))[0] == 404  # the backend's own
            assert (await client.get(THINGS))[0] == 404
            lines = [record.getMessage() for record in caplog.records if "passed on" in record.getMessage()]
            assert len([line for line in lines if "refused" in line]) == 1
            assert len([line for line in lines if "again" in line]) == 1

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


def test_body_is_not_sent_twice_over_a_connection_that_had_ended() -> None:
    async def scenario() -> None:
        async with proxying() as (origin, client), connected(client.base) as wire:
            await wire.ask(THINGS)
            assert (await wire.answer())[0].status == 200

            async def takes_and_dies(seen: Seen) -> None:
                await seen.read_body()
                seen.writer.transport.abort()  # type: ignore[attr-defined]

            origin.script = takes_and_dies
            await wire.ask(THINGS, method="PUT", body=b"abc")
            answer, body = await wire.answer()
            assert (answer.status, reason_of(body)) == (502, "BadGateway")
            assert [seen.body for seen in origin.requests if seen.method == "PUT"] == [b"abc"]

    asyncio.run(scenario())


def test_answer_before_the_end_of_a_body_ends_the_connection() -> None:
    async def scenario() -> None:
        async def refuses(seen: Seen) -> None:
            await seen.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

        async with proxying(refuses) as (_, client), connected(client.base) as wire:
            await wire.ask(THINGS, "Content-Length: 1000000", method="POST")
            await wire.send(b"x" * 1000)
            answer, body = await wire.answer()
            assert (answer.status, answer.value("Connection"), body) == (413, "close", b"{}")
            assert await wire.at_end()

    asyncio.run(scenario())


def test_stopping_the_service_ends_watches_within_its_time() -> None:
    async def scenario() -> None:
        async with proxying(watch) as (origin, client), connected(client.base) as wire:
            await wire.ask(f"{THINGS}?watch=true")
            await wire.head()
            started = time.monotonic()
            await client.app.server.stop()
            assert time.monotonic() - started < 3.0
            await asyncio.wait_for(origin.requests[0].left.wait(), 5)

    asyncio.run(scenario())


def test_resources_of_a_cluster_go_to_their_extension_or_to_the_apiserver_as_the_client() -> None:
    async def scenario() -> None:
        async with (
            serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics,
            FakeCluster({APPS: document(APPS)}) as cluster,
        ):
            cluster.tokens = {"ours", "theirs"}
            cluster.put(API_SERVICES, builtin("apps", "v1"))
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(CRDS, definition("Widget"))
            made = {f"/{key}/things": b'{"from": "the apiserver"}' for key in (WIDGETS, APPS)}
            cluster.pages.update(made)
            ours = Credentials(token="ours", impersonation=(("Impersonate-User", "specmux"),))
            server = backend("kubernetes", cluster.url, credentials=ours)
            watched = Kubernetes(in_cluster=True, service_url="http://127.0.0.1:{port}")
            async with service(cluster=server, kubernetes=watched, proxy=ON) as client:
                await until_ready(client)
                await client.until(lambda: METRICS in client.app.publisher.current.entries)
                assert owner_in(client, WIDGETS) == "kubernetes-crds"
                for target, body in made.items():
                    answer = await client.get(target, Authorization="Bearer theirs")
                    assert (answer[0], answer[2]) == (200, body)
                    sent = cluster.requests[-1].headers
                    assert sent["Authorization"] == "Bearer theirs"
                    assert "Impersonate-User" not in sent
                assert (await client.get(f"/{WIDGETS}/things"))[0] == 401  # nobody lends a name
                before = len(cluster.requests)
                assert (await client.get(f"/{METRICS}/nodes"))[0] == 404  # the extension's own answer
                assert not any("/nodes" in seen.target for seen in cluster.requests[before:])

    asyncio.run(scenario())


# kubectl


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_and_writes_through_us(tmp_path: Path) -> None:
    thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    path = "/api/v1/namespaces/a/configmaps"

    async def script(seen: Seen) -> None:
        await seen.read_body()
        body = seen.body or orjson.dumps(thing)
        await seen.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        await seen.write(body)

    async def scenario() -> None:
        origin = StreamingBackend(group_versions=("api/v1",), script=script)
        async with streaming(origin), service(backend("a", origin.url), proxy=ON) as client:
            await client.ready()
            config = tmp_path / "config"
            config.write_text("{}")
            manifest = tmp_path / "x.json"
            manifest.write_bytes(orjson.dumps(thing))

            async def kubectl(*arguments: str) -> Any:
                command = ["kubectl", f"--kubeconfig={config}", f"--server={client.base}", *arguments]
                done = await asyncio.to_thread(
                    subprocess.run, command, capture_output=True, timeout=30, check=False
                )
                assert done.returncode == 0, done.stderr
                return orjson.loads(done.stdout)

            assert await kubectl("get", "--raw", f"{path}/x") == thing
            assert await kubectl("create", "--raw", path, "-f", str(manifest)) == thing
            assert await kubectl("replace", "--raw", f"{path}/x", "-f", str(manifest)) == thing
            await kubectl("delete", "--raw", f"{path}/x")
            assert [seen.method for seen in origin.requests] == ["GET", "POST", "PUT", "DELETE"]

    asyncio.run(scenario())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_watches_through_us_and_leaves_nothing_behind(tmp_path: Path) -> None:
    group, key = "apiextensions.k8s.io", "apis/apiextensions.k8s.io/v1"
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    resource = {
        "name": "customresourcedefinitions",
        "singularName": "customresourcedefinition",
        "namespaced": False,
        "kind": "CustomResourceDefinition",
        "verbs": ["get", "list", "watch"],
    }
    pages = {
        "/api": {"kind": "APIVersions", "versions": []},
        "/apis": {"kind": "APIGroupList", "groups": [{"name": group, "versions": [version]}]},
        f"/{key}": {"kind": "APIResourceList", "groupVersion": f"{group}/v1", "resources": [resource]},
    }

    async def scenario() -> None:
        cluster = FakeCluster({key: document(key)})
        cluster.pages = {path: orjson.dumps(page) for path, page in pages.items()}
        async with cluster, service(backend("a", cluster.url), proxy=ON) as client:
            cluster.put(CRDS, {"metadata": {"name": "one.example.com"}})
            await client.ready()
            await until_listed(client, f"/{key}")
            (tmp_path / "config").write_text("{}")
            kubectl = await asyncio.create_subprocess_exec(
                "kubectl",
                f"--kubeconfig={tmp_path / 'config'}",
                f"--cache-dir={tmp_path / 'cache'}",
                f"--server={client.base}",
                *("get", "customresourcedefinitions", "--watch", "-o", "name"),
                stdout=subprocess.PIPE,
            )
            assert kubectl.stdout is not None
            try:
                async with asyncio.timeout(20):
                    assert b"one.example.com" in await kubectl.stdout.readline()
                    cluster.put(CRDS, {"metadata": {"name": "two.example.com"}})
                    assert b"two.example.com" in await kubectl.stdout.readline()
                assert gauge(client, "specmux_proxied_requests_in_flight") == 1
            finally:
                kubectl.kill()
                await kubectl.wait()
            await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)
            cluster.cut_watches()  # it would not notice by itself before it writes

    asyncio.run(scenario())


async def until_listed(client: Client, path: str) -> None:
    async with asyncio.timeout(20):
        while (await client.get(path))[0] != 200:
            await asyncio.sleep(0.02)

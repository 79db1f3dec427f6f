"""``/openapi/v2`` as a backend has it, passed through."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.streaming_backend import Seen, StreamingBackend, saying, streaming
from running.proxying_service import APPS, CHUNKED, proxying, reason_of
from running.service import IMPATIENT, QUICK, backend, directory, service
from running.wire_client import connected
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.http.content_codings import decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, ClusterFacts
from specmux_cache.access.server_access import Credentials


async def test_swagger_is_passed_through_with_its_validators() -> None:
    origin = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        status, headers, body = await client.get("/openapi/v2?timeout=32s", Accept="application/json")
        assert (status, body) == (200, swagger(APPS))
        assert headers["Content-Type"] == "application/json"
        assert [line for line in origin.log if "/openapi/v2" in line] == ["/openapi/v2"]  # without the query
        etag = headers["ETag"]
        status, headers, body = await client.get("/openapi/v2", If_None_Match=etag)
        assert (status, headers["ETag"], body) == (304, etag, b"")
        status, headers, body = await client.get("/openapi/v2", Accept_Encoding="gzip")
        assert (status, headers["Content-Encoding"], body[:2]) == (200, "gzip", b"\x1f\x8b")
        status, headers, body = await client.get("/openapi/v2", method="HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["Content-Length"]) == len(swagger(APPS))


async def test_swagger_is_asked_for_with_our_credentials_and_none_of_the_clients(tmp_path: Path) -> None:
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


async def test_swagger_in_a_type_that_no_apiserver_has_is_406_whoever_is_away() -> None:
    gone = FakeAPIServer(None, swagger(APPS))
    async with serving(gone):
        url = gone.url
    async with service(backend("gone", url)) as client:
        for wanted, status in (("application/cbor", 406), ("application/cbor, */*;q=0.1", 503)):
            assert (await client.get("/openapi/v2", Accept=wanted))[0] == status, wanted
        kubectls = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        assert (await client.get("/openapi/v2", Accept=kubectls))[0] == 503


async def test_swagger_comes_from_the_first_that_has_it() -> None:
    without = FakeAPIServer({APPS: document(APPS)})
    second, third = FakeAPIServer(None, swagger("apis/b/v1")), FakeAPIServer(None, swagger("apis/c/v1"))
    async with serving(without), serving(second), serving(third):
        backends = [
            backend("a", without.url, priority=9),
            backend("b", second.url, priority=7),
            backend("c", third.url, priority=6),
        ]
        async with service(*backends, polling=replace(QUICK, interval=60)) as client:
            await client.ready()
            assert (await client.get("/openapi/v2"))[2] == swagger("apis/b/v1")
            asked = without.count("/openapi/v2")
            assert (await client.get("/openapi/v2"))[2] == swagger("apis/b/v1")
            assert without.count("/openapi/v2") == asked  # that it has none is remembered
            await without.stop()
            assert (await client.get("/openapi/v2"))[2] == swagger("apis/b/v1")
            second.swagger_document = None
            assert (await client.get("/openapi/v2"))[2] == swagger("apis/c/v1")


def _of_a_cluster(whole: FakeAPIServer | StreamingBackend, part: FakeAPIServer) -> list[Backend]:
    return [
        backend("kubernetes", whole.url, found=ClusterFacts(is_fallback=True)),
        backend("v1.part", part.url, found=ClusterFacts()),
    ]


async def _hangs(seen: Seen) -> None:
    await seen.wait_until_left()


async def _breaks_off(seen: Seen) -> None:
    seen.cut()


AWAY = {
    "hangs": _hangs,
    "breaks off": _breaks_off,
    "fails": saying(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
    "starts": saying(b"HTTP/1.1 503 Starting\r\nContent-Length: 0\r\n\r\n"),
    "is crowded": saying(b"HTTP/1.1 429 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
}


@pytest.mark.parametrize("how", AWAY)
async def test_part_is_never_served_as_the_whole(how: str) -> None:
    part = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
    whole = swagger("apis/whole/v1")

    async def present(seen: Seen) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(whole)}\r\n\r\n"
        await seen.write(head.encode() + whole)

    async with (
        serving(part),
        streaming(StreamingBackend(script=AWAY[how])) as origin,
        service(*_of_a_cluster(origin, part), polling=IMPATIENT if how == "hangs" else QUICK) as client,
    ):
        await client.ready()
        for _ in range(3):
            status, headers, body = await client.get("/openapi/v2")
            assert (status, reason_of(body), headers["Retry-After"]) == (503, "ServiceUnavailable", "1")
        origin.script = present  # at once, in the same generation or another
        assert (await client.get("/openapi/v2"))[::2] == (200, whole)
        origin.script = AWAY[how]
        status, headers, body = await client.get("/openapi/v2")
        assert (status, body) == (200, whole)
        assert headers["Warning"].startswith("110 ")
        assert not part.count("/openapi/v2")


async def test_last_swagger_is_served_in_each_coding_and_marked_while_its_backend_is_away() -> None:
    whole, other = FakeAPIServer(None, swagger(APPS)), FakeAPIServer(None, swagger("apis/b/v1"))
    async with serving(whole), serving(other):
        backends = [backend("a", whole.url, priority=1), backend("b", other.url)]
        async with service(*backends) as client:
            await client.ready()
            _, headers, body = await client.get("/openapi/v2")
            assert "Warning" not in headers
            etag = headers["ETag"]
            await whole.stop()
            for coding in ("identity", "gzip", "zstd"):
                status, headers, body = await client.get("/openapi/v2", Accept_Encoding=coding)
                assert status == 200 and headers["Warning"].startswith("110 "), coding
                assert headers.get("Content-Encoding", "identity") == coding
                assert decode_body(body, Coding(coding), max_bytes=1 << 20) == swagger(APPS)
            assert b"specmux_stale_served_total 3.0" in (await client.get("/metrics"))[2]
            assert (await client.get("/openapi/v2", If_None_Match=etag))[0] == 304
            status, headers, body = await client.get("/openapi/v2", method="HEAD")
            assert (status, body, int(headers["Content-Length"])) == (200, b"", len(swagger(APPS)))
            # A form that was never passed on is not there, and the other backend's would be another document.
            kubectls = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            assert (await client.get("/openapi/v2", Accept=kubectls))[0] == 503
            whole.swagger_document = swagger(APPS, "2")
            await whole.start()
            answered = await client.get("/openapi/v2")
            while "Warning" in answered[1]:
                await asyncio.sleep(0.05)
                answered = await client.get("/openapi/v2")
            assert answered[2] == swagger(APPS, "2")
            await whole.stop()
            assert (await client.get("/openapi/v2"))[2] == swagger(APPS, "2")


async def test_swagger_that_breaks_off_is_no_last_one() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{}"

    async def breaks_off(seen: Seen) -> None:
        await seen.write(half)
        seen.cut()

    async with proxying(breaks_off) as (origin, client):
        async with connected(client.base) as wire:
            await wire.ask("/openapi/v2")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await wire.body(await wire.head())
        origin.script = AWAY["fails"]
        assert (await client.get("/openapi/v2"))[0] == 503


async def test_swagger_that_nobody_has_is_404_and_503_where_somebody_could_not_be_asked(
    tmp_path: Path,
) -> None:
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
async def test_swagger_that_cannot_be_passed_on_is_our_error(answer: bytes, cause: str) -> None:
    limits = LimitSettings(max_document_bytes=1000)
    async with proxying(saying(answer), limits=limits) as (_, client):
        status, headers, body = await client.get("/openapi/v2")
        assert status in (502, 503)
        assert cause in orjson.loads(body)["message"]
        assert "Location" not in headers
        assert b"evil" not in body


async def test_swagger_longer_than_allowed_is_cut() -> None:
    large = CHUNKED + b"200\r\n%b\r\n" % (b"x" * 512) * 4 + b"0\r\n\r\n"
    async with (
        proxying(saying(large), limits=LimitSettings(max_document_bytes=1000)) as (_, client),
        connected(client.base) as wire,
    ):
        await wire.ask("/openapi/v2")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await wire.answer()


async def test_swagger_goes_to_a_client_that_closed_its_side() -> None:
    async with proxying() as (_, client), connected(client.base) as wire:
        await wire.ask("/openapi/v2")
        wire.writer.write_eof()
        assert (await wire.answer())[0].status == 200
        assert await wire.at_end()


async def test_swagger_of_a_silent_backend_is_503_and_one_that_stalls_is_cut() -> None:
    async def silent(seen: Seen) -> None:
        await seen.wait_until_left()

    async def stalls(seen: Seen) -> None:
        await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await seen.wait_until_left()

    async with proxying(silent, polling=IMPATIENT) as (origin, client):
        status, headers, body = await client.get("/openapi/v2")
        assert (status, reason_of(body), headers["Retry-After"]) == (503, "ServiceUnavailable", "1")
        origin.script = stalls
        async with connected(client.base) as wire:
            await wire.ask("/openapi/v2")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await wire.body(await wire.head())

"""Objects and events of an apiserver: bounded, and every failure a value."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from fakes.cluster import CRDS, FakeCluster, status
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.kubernetes.api_client import ApiClient, Lines, LineTooLong
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure

POLLING = PollingSettings(connect_timeout=2.0, idle_timeout=0.5, total_timeout=1.0)


def asked(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
    question: Callable[[ApiClient], Awaitable[Any]],
    **bounds: int,
) -> Any:
    async def scenario() -> Any:
        async with FakeCluster() as cluster:
            cluster.answers[CRDS] = answer
            server = Backend(name=BackendName("kubernetes"), url=cluster.url)
            client = ApiClient(server, polling=POLLING, **bounds)
            try:
                return await question(client)
            finally:
                await client.close()

    return asyncio.run(scenario())


def got(answer: Callable[[web.Request], Awaitable[web.StreamResponse]], **bounds: int) -> Any:
    return asked(answer, lambda client: client.get(CRDS), **bounds)


def body(content: bytes, **more: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=content, **more)

    return answer


@pytest.mark.parametrize("size", [10, 200_000])
@pytest.mark.parametrize("is_packed", [True, False])
def test_object_is_read(size: int, is_packed: bool) -> None:
    content = b'{"x": "%s"}' % (b"x" * size)
    if is_packed:
        answer = body(gzip.compress(content), headers={"Content-Encoding": "gzip"})
    else:
        answer = body(content)
    assert got(answer) == {"x": "x" * size}


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (body(b"no JSON"), Cause.BAD_BODY),
        (body(b"[1]"), Cause.BAD_BODY),
        (body(b"x" * 2000), Cause.TOO_LARGE),
        (body(gzip.compress(b"x" * 2000), headers={"Content-Encoding": "gzip"}), Cause.TOO_LARGE),
        (body(gzip.compress(b"{}")[:-4], headers={"Content-Encoding": "gzip"}), Cause.TRUNCATED),
        (body(b"{}", headers={"Content-Encoding": "br"}), Cause.BAD_BODY),
        (body(b"", status=302, headers={"Location": "http://10.0.0.1/s3cret"}), Cause.REDIRECTED),
        (body(b"", status=304), Cause.UNEXPECTED_STATUS),
        (body(b"", status=204), Cause.UNEXPECTED_STATUS),
    ],
)
def test_what_is_no_object_is_a_failure(answer: Any, cause: Cause) -> None:
    failure = got(answer, max_bytes=1000)
    assert isinstance(failure, Failure)
    assert failure.cause is cause
    assert "s3cret" not in failure.detail


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 429, 500, 503])
def test_status_is_part_of_the_failure(code: int) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return status(code, "Reason")

    assert got(refuse).status == code
    assert watched(refuse).status == code


def test_silence_is_a_failure() -> None:
    async def hang(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    assert got(hang).cause is Cause.TIMEOUT
    assert watched(hang).cause is Cause.TIMEOUT


def watched(answer: Callable[[web.Request], Awaitable[web.StreamResponse]], **bounds: int) -> Any:
    return asked(
        answer,
        lambda client: client.events(
            CRDS, lasting=0.8, silence=9.0, opened=lambda: None, take=lambda _: None
        ),
        **bounds,
    )


@pytest.mark.parametrize("code", [201, 204, 302])
def test_watch_that_is_answered_otherwise_is_a_failure(code: int) -> None:
    assert watched(body(b"", status=code)).cause in (Cause.UNEXPECTED_STATUS, Cause.REDIRECTED)


def test_watch_without_an_end_is_ended() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(600):
            await response.write(b'{"type": "BOOKMARK"}\n')
            await asyncio.sleep(0.05)
        return response

    assert watched(drip) is None


def test_endless_line_costs_no_more_than_the_bound() -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 100_000_000:
            await response.write(b"x" * 65536)
            sent += 65536
        return response

    failure = watched(endless, max_line=1_000_000)
    assert failure.cause is Cause.TOO_LARGE
    assert sent < 50_000_000


def test_closed_client_says_so() -> None:
    async def question(client: ApiClient) -> tuple[Any, Any]:
        await client.close()
        ended = await client.events(CRDS, lasting=1.0, silence=9.0, opened=lambda: None, take=lambda _: None)
        return await client.get(CRDS), ended

    for failure in asked(body(b"{}"), question):
        assert failure.cause is Cause.INTERNAL


KINDS = [
    kind
    for name in sorted(aiohttp.client_exceptions.__all__)
    if issubclass(kind := getattr(aiohttp.client_exceptions, name), aiohttp.ClientError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_aiohttp_is_not_leaked_outside(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its exceptions is raised in place of a request, and comes out as a Failure."""

    def broken(*_: object, **__: object) -> None:
        raise kind.__new__(kind)

    monkeypatch.setattr(aiohttp.ClientSession, "request", broken)
    assert isinstance(got(body(b"{}")), Failure)
    assert isinstance(watched(body(b"{}")), Failure)


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(0, 40)))
def test_lines_are_the_same_however_they_come(lines: list[bytes], cuts: list[int]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    whole = b"".join(line + b"\n" for line in lines)
    reader, found, start = Lines(100), [], 0
    for cut in [*cuts, len(whole)]:
        found += reader.feed(whole[start : start + cut])
        start += cut
    assert found == [line for line in lines if line.strip()]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"x" * 11],
        [b"x" * 5, b"x" * 6],
        [b"a\n" + b"x" * 11],
        [b"a\n" + b"x" * 11 + b"\n"],
        [b"x" * 10, b"x\n"],
        [b"a\n" + b"x" * 10, b"x"],
    ],
)
def test_line_beyond_the_bound_is_refused(chunks: list[bytes]) -> None:
    reader = Lines(10)
    with pytest.raises(LineTooLong):
        for chunk in chunks:
            reader.feed(chunk)


def test_line_of_the_bound_is_taken() -> None:
    reader = Lines(10)
    assert reader.feed(b"x" * 10) == []
    assert reader.feed(b"\n" + b"y" * 10 + b"\n") == [b"x" * 10, b"y" * 10]

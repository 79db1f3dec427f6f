"""One backend over real sockets: every way it can fail is a Failure, and nothing else comes out."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from deadline import DEADLINE
from fakes import faulty_backend as faulty
from fakes.faulty_backend import FAULTS, SLOW_FAULTS, FaultyBackend, document, document_hash
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.http.content_codings import decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.client import (
    CONCURRENT_DOCUMENTS,
    BackendClient,
    BackendRoot,
    MovedDocument,
    NotModified,
    Payload,
)
from specmux_aggregator.upstream.connections.connector import CheckedConnector
from specmux_converters.group_versions import GroupVersion

APPS = GroupVersion("apis/apps/v1")
PATIENT = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)
QUICK = PollingSettings(connect_timeout=2.0, idle_timeout=0.3, total_timeout=0.8)
SMALL = LimitSettings(max_document_bytes=4 * 1024 * 1024, max_root_bytes=4 * 1024 * 1024)


def polling_for(fault: str) -> PollingSettings:
    return QUICK if fault in SLOW_FAULTS else PATIENT


def backend_at(url: str, **fields: Any) -> Backend:
    return Backend(name=BackendName("b"), url=url, **fields)


@asynccontextmanager
async def asking(
    backend: Backend, *, polling: PollingSettings = PATIENT, limits: LimitSettings = SMALL
) -> AsyncIterator[BackendClient]:
    client = BackendClient(backend, polling=polling, limits=limits)
    try:
        yield client
    finally:
        await client.close()


def ask(
    server: FaultyBackend,
    question: Callable[[BackendClient], Awaitable[Any]],
    *,
    polling: PollingSettings = PATIENT,
    limits: LimitSettings = SMALL,
    **fields: Any,
) -> Any:
    async def scenario() -> Any:
        async with server, asking(backend_at(server.url, **fields), polling=polling, limits=limits) as client:
            return await question(client)

    return asyncio.run(scenario())


def document_of(client: BackendClient, asked: str | None = "AB") -> Awaitable[Any]:
    return client.document(APPS, hash=None if asked is None else Hash(asked), accept_gzip=True)


QUESTIONS: tuple[Callable[[BackendClient], Awaitable[Any]], ...] = (
    lambda client: client.root(),
    lambda client: client.swagger(),
    lambda client: client.review("/apis/authentication.k8s.io/v1/tokenreviews", b"{}", max_bytes=1000),
)


def test_root_gives_offers_and_etag_then_not_modified() -> None:
    body = document("apis/apps/v1")

    async def question(client: BackendClient) -> None:
        root = await client.root()
        assert isinstance(root, BackendRoot)
        assert dict(root.offers) == {APPS: document_hash(body)}
        assert root.etag is not None
        assert await client.root(etag=root.etag) == NotModified()

    ask(FaultyBackend({"apis/apps/v1": body}), question)


@pytest.mark.parametrize(("accept_gzip", "coding"), [(True, Coding.GZIP), (False, Coding.IDENTITY)])
def test_document_comes_as_transferred(accept_gzip: bool, coding: Coding) -> None:
    body = document("apis/apps/v1")

    async def question(client: BackendClient) -> Payload:
        payload = await client.document(APPS, hash=Hash(document_hash(body)), accept_gzip=accept_gzip)
        assert isinstance(payload, Payload)
        assert (
            await client.document(APPS, hash=None, accept_gzip=accept_gzip, etag=payload.etag)
            == NotModified()
        )
        return payload

    payload = ask(FaultyBackend({"apis/apps/v1": body}), question)
    assert payload.coding is coding
    assert payload.media_type == "application/json"
    assert decode_body(payload.body, payload.coding, max_bytes=10_000) == body


def test_document_says_moved_when_the_backend_redirects_to_another_hash() -> None:
    body = document("apis/apps/v1")
    server = FaultyBackend({"apis/apps/v1": body})
    assert ask(server, document_of) == MovedDocument(Hash(document_hash(body)))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "/openapi/v3/apis/apps/v1?hash=CD",
        "/base/path/openapi/v3/apis/apps/v1?hash=CD",
        "?hash=CD",
        "/openapi/v3/apis/apps/v1?etag=CD",
    ],
)
def test_document_says_moved_for_every_spelling_of_the_same_document(status: int, location: str) -> None:
    server = FaultyBackend(fault=faulty.with_status(status, Location=location))

    async def scenario() -> Any:
        async with server, asking(backend_at(f"{server.url}/base/path")) as client:
            return await document_of(client)

    assert asyncio.run(scenario()) == MovedDocument(Hash("CD"))
    assert server.requests[0].target == "/base/path/openapi/v3/apis/apps/v1?hash=AB"


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/openapi/v3/apis/apps/v1?hash=CD",
        "//evil/openapi/v3/apis/apps/v1?hash=CD",
        "/openapi/v3/apis/apps/v2?hash=CD",
        "/openapi/v3/apis/apps/v1/../v1?hash=CD",
        "/openapi/v3/apis/apps%2fv1?hash=CD",
        "/openapi/v3/apis/apps/v1?hash=CD&x=1",
        "/openapi/v3/apis/apps/v1?hash=" + "A" * 129,
        "\\openapi/v3/apis/apps/v1?hash=CD",
        "apis/apps/v1?hash=CD",
        "/api/v1/namespaces/kube-system/secrets",
        "",
        "?hash=AB",  # to itself
    ],
)
def test_document_refuses_every_other_redirect(location: str) -> None:
    answer = ask(FaultyBackend(fault=faulty.with_status(302, Location=location)), document_of)
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.REDIRECTED


async def test_redirects_are_never_followed() -> None:
    trap = FaultyBackend({"apis/apps/v1": document("apis/apps/v1")})

    async with trap:
        server = FaultyBackend(fault=faulty.with_status(302, Location=f"{trap.url}/openapi/v3"))
        async with server, asking(backend_at(server.url)) as client:
            for answer in (await client.root(), await client.swagger(), await document_of(client)):
                assert isinstance(answer, Failure)
                assert answer.cause is Cause.REDIRECTED
    assert trap.requests == []


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("https://login.example/?token=SECRET", "to the host login.example"),
        ("https://user:SECRET@login.example/SECRET#SECRET", "to the host login.example"),
        ("/SECRET", "to something else"),
        ("http://[SECRET", "to something else"),
    ],
)
def test_redirect_detail_tells_the_host_and_no_more(location: str, said: str) -> None:
    answer = ask(
        FaultyBackend(fault=faulty.with_status(302, Location=location)), lambda client: client.root()
    )
    assert said in answer.detail
    assert "SECRET" not in answer.detail


def test_swagger_asks_for_json_first_and_gives_raw_bytes() -> None:
    swagger = b'{"swagger": "2.0"}'
    server = FaultyBackend(swagger=swagger)
    payload = ask(server, lambda client: client.swagger())
    assert gzip.decompress(payload.body) == swagger
    assert server.requests[0].fields["accept"].startswith("application/json, ")


@pytest.mark.parametrize("name", FAULTS)
def test_root_names_the_cause_when_the_backend_misbehaves(name: str) -> None:
    fault, causes = FAULTS[name]
    answer = ask(FaultyBackend(fault=fault), lambda client: client.root(), polling=polling_for(name))
    assert isinstance(answer, Failure)
    assert answer.cause.value in causes
    assert answer.detail.isprintable()
    assert len(answer.detail) < 400


TRANSPORT_FAULTS = [
    "reset", "reset_mid_body", "disconnect", "drip", "hang", "stall", "short_body", "cut_chunks",
    "cut_without_length", "not_http", "endless_header", "endless_body", "huge_length", "unknown_coding",
]  # fmt: skip


@pytest.mark.parametrize("name", TRANSPORT_FAULTS)
def test_document_and_swagger_name_the_cause_when_the_transport_fails(name: str) -> None:
    fault, causes = FAULTS[name]

    async def question(client: BackendClient) -> list[Any]:
        return list(await asyncio.gather(document_of(client), client.swagger()))

    for answer in ask(FaultyBackend(fault=fault), question, polling=polling_for(name)):
        assert isinstance(answer, Failure)
        assert answer.cause.value in causes


@pytest.mark.parametrize(
    ("status", "fields", "cause", "wait"),
    [
        (401, {}, Cause.CREDENTIALS, None),
        (403, {}, Cause.CREDENTIALS, None),
        (404, {}, Cause.NOT_FOUND, None),
        (406, {}, Cause.NOT_ACCEPTABLE, None),
        (429, {}, Cause.THROTTLED, None),
        (429, {"Retry_After": "7"}, Cause.THROTTLED, 7.0),
        (429, {"Retry_After": "999999999999"}, Cause.THROTTLED, 3600.0),
        (503, {"Retry_After": "7"}, Cause.THROTTLED, 7.0),
        (503, {}, Cause.SERVER_ERROR, None),
        (500, {}, Cause.SERVER_ERROR, None),
        (599, {}, Cause.SERVER_ERROR, None),
        (303, {"Location": "/openapi/v3"}, Cause.REDIRECTED, None),
        (300, {}, Cause.REDIRECTED, None),
        (201, {}, Cause.UNEXPECTED_STATUS, None),
        (206, {}, Cause.UNEXPECTED_STATUS, None),
        (418, {}, Cause.UNEXPECTED_STATUS, None),
    ],
)
def test_statuses_are_classified(
    status: int, fields: dict[str, str], cause: Cause, wait: float | None
) -> None:
    answer = ask(FaultyBackend(fault=faulty.with_status(status, **fields)), lambda client: client.root())
    assert isinstance(answer, Failure)
    assert (answer.cause, answer.retry_after) == (cause, wait)


def test_304_is_a_failure_when_nothing_was_asked_for_conditionally() -> None:
    async def not_modified(exchange: faulty.Exchange) -> None:
        await exchange.send(faulty.head(304, None))

    answer = ask(FaultyBackend(fault=not_modified), lambda client: client.root())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNEXPECTED_STATUS


def test_body_without_a_length_is_taken_when_it_shows_that_it_is_whole() -> None:
    async def without_length(exchange: faulty.Exchange) -> None:
        await exchange.send(b'HTTP/1.0 200 OK\r\n\r\n{"paths": {}}')

    answer = ask(FaultyBackend(fault=without_length), lambda client: client.root())
    assert isinstance(answer, BackendRoot)


@pytest.mark.parametrize("end", [b'"}', b""])
def test_large_body_without_a_length_is_checked_too(end: bytes) -> None:
    async def without_length(exchange: faulty.Exchange) -> None:
        await exchange.send(faulty.head(200, None) + b'{"x": "' + b"x" * 200_000 + end)

    answer = ask(FaultyBackend(fault=without_length), lambda client: client.swagger())
    assert isinstance(answer, Payload) if end else answer.cause is Cause.TRUNCATED


def test_refused_when_nothing_listens() -> None:
    async def scenario() -> Any:
        server = FaultyBackend()
        async with server:
            url = server.url
        async with asking(backend_at(url)) as client:
            return await client.root()

    assert asyncio.run(scenario()) == Failure(Cause.REFUSED, "connection refused")


@pytest.mark.parametrize("host", ["no-such-host.invalid", f"{'a' * 64}.invalid", "x" * 300])
def test_unresolved_when_the_host_has_no_address(host: str) -> None:
    async def scenario() -> Any:
        async with asking(
            backend_at(f"http://{host}:80"), polling=replace(PATIENT, total_timeout=5.0)
        ) as client:
            return await client.root()

    answer = asyncio.run(scenario())
    assert isinstance(answer, Failure)
    assert answer.cause in (Cause.UNRESOLVED, Cause.TIMEOUT)  # a resolver may be slow to say no


def test_timeout_when_no_connection_comes_about() -> None:
    async def scenario(port: int) -> Any:
        polling = replace(PATIENT, connect_timeout=0.2)
        async with asking(backend_at(f"http://127.0.0.1:{port}"), polling=polling) as client:
            return await client.root()

    with contextlib.ExitStack() as stack:
        # A full backlog that nobody accepts from: the kernel drops every further SYN.
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        answer = asyncio.run(scenario(listening.getsockname()[1]))
    assert answer == Failure(Cause.TIMEOUT, "no connection within 0.2 s")


def test_bomb_costs_no_memory_beyond_the_cap() -> None:
    async def question(client: BackendClient) -> Any:
        tracemalloc.start()
        try:
            return await client.root(), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    faulty.gzip_bomb()  # the backend's own memory is not what is measured: see the margin
    answer, peak = ask(FaultyBackend(fault=faulty.bomb), question)
    assert answer.cause is Cause.TOO_LARGE
    assert peak < 16 * 1024 * 1024


def test_large_root_is_parsed_while_the_loop_runs_on() -> None:
    root = faulty.root_of({f"apis/group-{number}/v1": "AB" * 40 for number in range(9_000)})
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    async def question(client: BackendClient) -> Any:
        ticker = asyncio.create_task(tick())
        try:
            return await client.root()
        finally:
            ticker.cancel()

    limits = LimitSettings(max_root_bytes=8 * 1024 * 1024)
    answer = ask(FaultyBackend(root=root), question, limits=limits)
    assert isinstance(answer, BackendRoot)
    assert len(answer.offers) == 9_000
    assert ticks > 10


def test_hanging_documents_do_not_delay_the_root() -> None:
    body = document("apis/apps/v1")
    server = FaultyBackend({"apis/apps/v1": body})

    async def hang_on_documents(exchange: faulty.Exchange) -> None:
        await (server.behave if exchange.target == "/openapi/v3" else faulty.hang)(exchange)

    server.fault = hang_on_documents

    async def question(client: BackendClient) -> Any:
        hanging = [asyncio.ensure_future(document_of(client)) for _ in range(3 * CONCURRENT_DOCUMENTS)]
        await asyncio.sleep(0.05)
        root = await client.root()
        asked = len(server.requests)
        return root, asked, await asyncio.gather(*hanging)

    root, asked, documents = ask(server, question, polling=replace(PATIENT, total_timeout=2.0))
    assert isinstance(root, BackendRoot)
    assert {answer.cause for answer in documents} == {Cause.TIMEOUT}
    assert asked == 1 + CONCURRENT_DOCUMENTS


def test_cancellation_passes_through() -> None:
    async def question(client: BackendClient) -> None:
        asked = asyncio.ensure_future(client.root())
        await asyncio.sleep(0.05)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    ask(FaultyBackend(fault=faulty.hang), question)


def test_close_ends_what_is_asked_and_refuses_what_comes_later() -> None:
    async def question(client: BackendClient) -> tuple[Any, Any]:
        asked = asyncio.ensure_future(client.root())
        await asyncio.sleep(0.05)
        await client.close()
        return await asked, await client.root()

    for answer in ask(FaultyBackend(fault=faulty.hang), question):
        assert isinstance(answer, Failure)
        assert answer.cause is Cause.INTERNAL


def test_connections_are_reused() -> None:
    async def question(client: BackendClient) -> None:
        for _ in range(3):
            assert isinstance(await client.root(), BackendRoot)

    server = FaultyBackend({})
    ask(server, question)
    assert len({exchange.writer for exchange in server.requests}) == 1


def test_requests_carry_only_what_is_configured() -> None:
    server = FaultyBackend({})
    ask(server, lambda client: client.root())
    assert server.requests[0].fields.keys() == {"host", "user-agent", "accept", "accept-encoding"}


def test_cookies_of_a_backend_are_not_kept() -> None:
    async def set_cookie(exchange: faulty.Exchange) -> None:
        await exchange.answer(200, b'{"paths": {}}', Set_Cookie="session=1; Path=/")

    async def question(client: BackendClient) -> None:
        await client.root()
        await client.root()

    server = FaultyBackend(fault=set_cookie)
    ask(server, question)
    assert all("cookie" not in exchange.fields for exchange in server.requests)


def test_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert isinstance(ask(FaultyBackend({}), lambda client: client.root()), BackendRoot)


AIOHTTP_ERRORS = [
    kind
    for name in sorted(aiohttp.client_exceptions.__all__)
    if issubclass(kind := getattr(aiohttp.client_exceptions, name), aiohttp.ClientError)
]


@pytest.mark.parametrize("kind", AIOHTTP_ERRORS)
def test_aiohttp_is_not_leaked_outside(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """No exception class of aiohttp gets out, whichever it is: each is raised in place of the request."""

    def broken(*_: object, **__: object) -> None:
        raise kind.__new__(kind)

    monkeypatch.setattr(aiohttp.ClientSession, "request", broken)
    monkeypatch.setattr(CheckedConnector, "connect", broken)
    for question in (lambda client: client.root(), lambda client: client.swagger(), document_of):
        answer = ask(FaultyBackend(), question)
        assert isinstance(answer, Failure)
        assert isinstance(answer.detail, str)

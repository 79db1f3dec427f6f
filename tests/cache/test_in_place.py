"""SchemaCache without a background says what it says with one, whatever the server does; how answers are read
from a connection is tested in ``http/test_transport.py``."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
import zstandard

from fakes.openapi_server import Reference, Reply, Request, document, hash_of
from fakes.openapi_thread import serving_in_thread
from specmux_cache import CacheOptions, SchemaCache, StoreLimits
from specmux_cache.errors import BadAnswer, CacheError

in_place = partial(SchemaCache, background=False)
CORE = document("core", filler="x" * 200_000)
JSON = ("Content-Type", "application/json")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LIMITS = StoreLimits(max_body_bytes=300_000)

ASKED: dict[str, Callable[[Any], Any]] = {
    "paths": lambda cache: cache.paths(),
    "document": lambda cache: cache.schema("api/v1"),
    "its short name": lambda cache: cache.schema("v1", media="json"),
    "document that is not there": lambda cache: cache.schema("apis/none/v1"),
    "resource": lambda cache: cache.resource("/api", headers={"Accept": "application/json"}),
    "resource elsewhere": lambda cache: cache.resource("/metrics"),
    "credentials of one request": lambda cache: cache.resource("/api", headers={"Authorization": "x"}),
}


async def slow(_: Request) -> Reply:
    await asyncio.sleep(5)
    return Reply()


def packed(body: bytes, coding: str) -> Reply:
    return Reply(200, body, [JSON, ("Content-Encoding", coding)])


FAULTS: dict[str, Any] = {
    "none": None,
    "forbidden": Reply(403, b'{"kind":"Status","message":"no right to that"}', [JSON]),
    "unauthorized": Reply(401, b"", []),
    "missing": Reply(404, b"nothing here", [("Content-Type", "text/plain")]),
    "gone": Reply(410, b"", []),
    "unavailable": Reply(503, b"starting\nup", [("Content-Type", "text/plain"), ("Retry-After", "1")]),
    "too many": Reply(429, b"", [("Retry-After", "1")]),
    "not acceptable": Reply(406, b"", []),
    "unasked 304": Reply(304, b"", []),
    "another 304": Reply(304, b"", [("Etag", '"other"')]),
    "no content": Reply(204, b"", []),
    "moved away": Reply(301, b"", [("Location", "http://elsewhere.example/openapi/v3")]),
    "moved to another": Reply(302, b"", [("Location", "/openapi/v3/apis/other/v1?hash=1")]),
    "moved to itself": lambda request: Reply(307, b"", [("Location", request.target)]),
    "moved on and on": lambda request: Reply(
        308, b"", [("Location", f"{request.path}?hash=A{request.target}")]
    ),
    "moved nowhere": Reply(301, b"", []),
    "not JSON": Reply(200, b"<html>", [JSON]),
    "another type": Reply(200, b"{}", [("Content-Type", "text/html")]),
    "no type": Reply(200, CORE, []),
    "a list": Reply(200, b"[]", [JSON]),
    "empty": Reply(200, b"", [JSON]),
    "not to be kept": Reply(200, CORE, [JSON, ("Cache-Control", "no-store")]),
    "a field beyond ASCII": Reply(200, CORE, [JSON, ("Etag", '"\xe9\xff"'), ("Warning", "\xc3\xa9")]),
    "cut off": Reply(200, CORE, [JSON], length=len(CORE) + 1),
    "too large": Reply(200, b'{"a":"' + b"x" * 400_000 + b'"}', [JSON]),
    "too large by its length": Reply(200, b"{}", [JSON], length=10**12),
    "gzip": packed(gzip.compress(CORE), "gzip"),
    "zstd": packed(zstandard.compress(CORE), "zstd"),
    "another coding": packed(CORE, "br"),
    "two codings": packed(gzip.compress(CORE), "gzip, gzip"),
    "gzip bomb": packed(gzip.compress(b"0" * 5_000_000), "gzip"),
    "zstd bomb": packed(zstandard.compress(b"0" * 5_000_000), "zstd"),
    "gzip cut off": packed(gzip.compress(CORE)[:-9], "gzip"),
    "gzip that is none": packed(zlib.compress(CORE), "gzip"),
    "slow": slow,
}


def told(ask: Callable[[Any], Any], cache: Any) -> Any:
    """The answer without its age; an error's type and text."""
    try:
        found = ask(cache)
    except (CacheError, ValueError) as error:
        return type(error), str(error)
    known = {each.name: getattr(found, each.name) for each in fields(found) if each.name != "age"}
    return known | ({"body": hash_of(known["body"])} if "body" in known else {})


def beside(reference: Reference, fault: Any, *, spared: str) -> Any:
    """``fault`` for every path but this one."""

    def answer(request: Request) -> Any:
        if fault is None or request.path == spared:
            return reference(request)
        return fault(request) if callable(fault) else fault

    return answer


@pytest.mark.parametrize("spared", ["/openapi/v3", ""], ids=["documents", "all"])
@pytest.mark.parametrize("is_filled", [True, False], ids=["filled", "empty"])
@pytest.mark.parametrize("name", FAULTS)
def test_answers_are_those_of_the_client(name: str, is_filled: bool, spared: str, tmp_path: Path) -> None:
    seen: list[Any] = []
    reference = Reference({"api/v1": CORE})
    timeout = 0.5 if name == "slow" else 10.0
    with serving_in_thread(reference) as server:
        for kind in (SchemaCache, in_place):
            server.server.answer = reference
            options = CacheOptions(directory=tmp_path / str(kind is in_place), limits=LIMITS, timeout=timeout)
            reference.documents["api/v1"] = CORE
            if is_filled:
                with SchemaCache(server.url, options) as cache:
                    cache.schema("api/v1")
            reference.documents["api/v1"] = document("changed") if spared else CORE
            server.server.answer = beside(reference, FAULTS[name], spared=spared)
            with kind(server.url, options, warn=pytest.fail) as cache:
                seen.append({asked: told(ask, cache) for asked, ask in ASKED.items()})
    assert seen[1] == seen[0]


@pytest.mark.parametrize("root_ttl", [0.0, 60.0])
def test_a_document_that_moved_is_followed(root_ttl: float, tmp_path: Path) -> None:
    reference = Reference({"api/v1": CORE})
    with serving_in_thread(reference) as server:
        options = CacheOptions(directory=tmp_path, root_ttl=root_ttl)
        with in_place(server.url, options, warn=pytest.fail) as cache:
            cache.paths()
            reference.documents["api/v1"] = changed = document("changed")
            assert (cache.schema("v1").body, cache.schema("v1").hash) == (changed, hash_of(changed))
            assert cache.schema("v1").from_cache


def test_a_transfer_coding_that_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    """What is still packed is not the body."""
    answer = OK + b"Transfer-Encoding: gzip\r\n\r\n" + gzip.compress(CORE)
    with (
        serving_in_thread(lambda _: answer) as server,
        in_place(server.url, CacheOptions(directory=tmp_path), warn=pytest.fail) as cache,
        pytest.raises(BadAnswer),
    ):
        cache.resource("/api")


def test_nobody_listens(tmp_path: Path) -> None:
    with serving_in_thread(Reference({})) as server:
        url = server.url
    for address in (url, "http://no-such-host.invalid:1", "http://xn--a\u00df..:1"):
        seen = []
        for kind in (SchemaCache, in_place):
            with kind(address, CacheOptions(directory=None), warn=pytest.fail) as cache:
                seen.append(told(lambda cache: cache.paths(), cache))
        assert seen[1] == seen[0]


def test_what_is_fetched_ahead_is_what_is_missing(tmp_path: Path) -> None:
    keys = [f"apis/group{number}.example/v1" for number in range(9)]
    reference = Reference({key: document(key) for key in keys})
    with serving_in_thread(reference) as server:
        broken = f"/openapi/v3/{keys[8]}"
        server.server.answer = lambda request: Reply(500) if request.path == broken else reference(request)
        with in_place(server.url, CacheOptions(directory=tmp_path), warn=pytest.fail) as cache:
            cache.schema(keys[0])
            found = cache.prefetch([*keys, keys[1], "apis/none/v1"])
            assert found.present == (keys[0],)
            assert found.fetched == tuple(keys[1:8])
            assert set(found.failed) == {keys[8], "apis/none/v1"}
            assert cache.prefetch(keys[:8]).present == tuple(keys[:8])
            asked = len(server.server.requests)
            assert all(cache.schema(key).from_cache for key in keys[:8])
            assert {request.path for request in server.server.requests[asked:]} == {"/openapi/v3"}


def test_entries_are_the_credentials_own_and_shared_with_the_client(tmp_path: Path) -> None:
    reference = Reference({"api/v1": CORE})
    options = CacheOptions(directory=tmp_path)
    mine, other = {"Authorization": "Bearer mine"}, {"Authorization": "Bearer other"}
    with serving_in_thread(reference) as server:
        with in_place(server.url, options, headers=mine, identity="me", warn=pytest.fail) as cache:
            assert not cache.schema("v1").from_cache
            partition = cache.partition
        with SchemaCache(server.url, options, headers=mine, identity="me") as client:
            assert (client.schema("v1").from_cache, client.partition) == (True, partition)
        with in_place(server.url, options, headers=other, identity="me", warn=pytest.fail) as cache:
            assert not cache.schema("v1").from_cache
        tokens = {request.headers.get("authorization") for request in server.server.requests}
        assert tokens == {"Bearer mine", "Bearer other"}


def test_what_may_be_used_while_it_is_asked_for_is_asked_for_at_once(tmp_path: Path) -> None:
    bodies = iter([b'{"a":1}', b'{"a":2}'])
    fields = [JSON, ("Cache-Control", "max-age=0, stale-while-revalidate=60")]
    with serving_in_thread(lambda _: Reply(200, next(bodies), fields)) as server:
        options = CacheOptions(directory=tmp_path)
        with in_place(server.url, options, warn=pytest.fail) as cache:
            assert [cache.resource("/api").body for _ in range(2)] == [b'{"a":1}', b'{"a":2}']


@pytest.mark.parametrize("case", ["trusted", "not trusted", "another name", "as named", "not TLS"])
def test_certificates_are_checked_as_the_client_does(case: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("cluster.example" if "name" in case else "127.0.0.1").configure_cert(own)
    trusting = ssl.create_default_context()
    if case != "not trusted":
        authority.configure_trust(trusting)
    named = "cluster.example" if case == "as named" else None
    seen = []
    with serving_in_thread(Reference({"api/v1": CORE}), tls=None if case == "not TLS" else own) as server:
        for kind in (SchemaCache, in_place):
            options = CacheOptions(directory=tmp_path / str(kind is in_place), timeout=1.0)
            url = server.url.replace("http:", "https:")
            with kind(url, options, tls=trusting, server_name=named, warn=pytest.fail) as cache:
                seen.append({asked: told(ASKED[asked], cache) for asked in ("paths", "document")})
    assert seen[1] == seen[0]
    assert isinstance(seen[0]["document"], dict) == (case in ("trusted", "as named"))


def test_closed_it_says_so(tmp_path: Path) -> None:
    cache = in_place("http://127.0.0.1:1", CacheOptions(directory=tmp_path), warn=pytest.fail)
    with pytest.raises(RuntimeError, match="not open"):
        cache.paths()

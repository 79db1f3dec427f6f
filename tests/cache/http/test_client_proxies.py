"""A client whose requests go through an HTTP proxy, with an event loop and without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

from fakes.connect_proxy import ConnectProxy
from fakes.listening import StreamServer
from fakes.openapi_server import Reference, document
from fakes.openapi_thread import serving_in_thread
from running.event_loop import serving
from specmux_cache import CacheOptions, SchemaCache
from specmux_cache.errors import ServerUnreachable

SECRET = "p%40ss"
KINDS = pytest.mark.parametrize("background", [True, False], ids=["in the background", "in place"])


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def serving_tls(ca: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    return context


def trusting(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    ca.configure_trust(context)
    return context


@contextmanager
def started(proxy: Any) -> Iterator[Any]:
    with serving(SimpleNamespace(start=proxy.__aenter__, stop=proxy.__aexit__)):
        yield proxy


@contextmanager
def proxied(
    background: bool, server: Any, ca: trustme.CA, folder: Path, **access: Any
) -> Iterator[SchemaCache]:
    options = CacheOptions(directory=folder, timeout=20.0)
    url = access.pop("url", server.url)
    with SchemaCache(url, options, background=background, tls=trusting(ca), **access) as cache:
        yield cache


def reason_of(*setting: Any, proxy: str) -> str:
    with proxied(*setting, proxy=proxy) as cache, pytest.raises(ServerUnreachable) as caught:
        cache.paths()
    return caught.value.reason


@KINDS
@pytest.mark.parametrize("is_proxy_tls", [True, False], ids=["https proxy", "http proxy"])
@pytest.mark.parametrize("is_tls", [True, False], ids=["https", "http"])
def test_server_is_asked_through_the_proxy(
    is_tls: bool, is_proxy_tls: bool, background: bool, ca: trustme.CA, tmp_path: Path
) -> None:
    tls, proxy_tls = (serving_tls(ca) if each else None for each in (is_tls, is_proxy_tls))
    reference = Reference({"api/v1": document("core", filler="x" * 300_000)})
    with serving_in_thread(reference, tls=tls) as server, started(ConnectProxy(tls=proxy_tls)) as proxy:
        with proxied(background, server, ca, tmp_path, proxy=proxy.url) as cache:
            assert cache.schema("v1").body == reference.documents["api/v1"]
        address = server.url.split("//")[1]
        if is_tls:
            assert set(proxy.seen) == {f"CONNECT {address} HTTP/1.1"}
        else:
            assert f"GET {server.url}/openapi/v3 HTTP/1.1" in proxy.seen


@KINDS
@pytest.mark.parametrize("is_tls", [True, False], ids=["https", "http"])
def test_password_is_the_proxys_alone(is_tls: bool, background: bool, ca: trustme.CA, tmp_path: Path) -> None:
    tls = serving_tls(ca) if is_tls else None
    with (
        serving_in_thread(Reference({"api/v1": document("core")}), tls=tls) as server,
        started(ConnectProxy(password="jane:p@ss")) as proxy,
    ):
        url = proxy.url.replace("//", f"//jane:{SECRET}@")
        with proxied(background, server, ca, tmp_path, proxy=url) as cache:
            assert cache.schema("v1").body
        if is_tls:
            seen = [name for request in server.server.requests for name in request.headers]
            assert not [name for name in seen if name.lower().startswith("proxy")]


@KINDS
def test_name_behind_a_proxy_is_the_proxys_to_resolve(
    background: bool, ca: trustme.CA, tmp_path: Path
) -> None:
    with serving_in_thread(
        Reference({"api/v1": document("core")}), tls=serving_tls(ca, "api.example")
    ) as server:
        port = int(server.url.rsplit(":", 1)[1])
        with started(ConnectProxy(target=("127.0.0.1", port))) as proxy:
            where = {"url": "https://no-such-host.invalid:6443", "server_name": "api.example"}
            with proxied(background, server, ca, tmp_path, proxy=proxy.url, **where) as cache:
                assert cache.schema("v1").body
    assert set(proxy.seen) == {"CONNECT no-such-host.invalid:6443 HTTP/1.1"}


@KINDS
def test_proxy_that_refuses_is_named_without_its_password(
    background: bool, ca: trustme.CA, tmp_path: Path
) -> None:
    with serving_in_thread(Reference({}), tls=serving_tls(ca)) as server:
        with started(ConnectProxy(password="other")) as proxy:
            url = proxy.url.replace("//", f"//jane:{SECRET}@")
            refused = reason_of(background, server, ca, tmp_path, proxy=url)
        away = reason_of(background, server, ca, tmp_path, proxy=url)
    assert refused == f"by the proxy {proxy.url}: it answered 407"
    assert away == f"by the proxy {proxy.url}: connection refused"


class TalkingProxy:
    """Sends an answer into the tunnel before anything was asked."""

    url = ""

    async def __aenter__(self) -> None:
        self._server = StreamServer(self._talk)
        self.url = f"http://127.0.0.1:{await self._server.start()}"

    async def __aexit__(self) -> None:
        await self._server.stop()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
        await writer.drain()


@KINDS
def test_bytes_of_the_proxy_within_the_tunnel_are_refused(
    background: bool, ca: trustme.CA, tmp_path: Path
) -> None:
    with (
        serving_in_thread(Reference({}), tls=serving_tls(ca)) as server,
        started(TalkingProxy()) as proxy,
        proxied(background, server, ca, tmp_path, proxy=proxy.url) as cache,
        pytest.raises(ServerUnreachable),
    ):
        cache.paths()
    assert server.server.requests == []

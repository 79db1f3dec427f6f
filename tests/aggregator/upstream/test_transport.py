"""The way to a backend: proxies, data in place of files, what is shown of us."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from blockbuster import blockbuster_ctx

from fakes.asked_backend import POLLING, root_of
from fakes.bare_authority import BareAuthority
from fakes.cluster import CRDS, FakeCluster
from fakes.connect_proxy import ConnectProxy
from specmux_aggregator.config.settings import LimitSettings
from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.client import BackendClient, BackendRoot
from specmux_cache.access.credentials import TrustStore
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.errors import UnusableCredentials

SECRET = "s3cret"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def serving_tls(ca: trustme.CA, *names: str, wants_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        ca.configure_trust(context)
    return context


def backend_at(url: str, **fields: Any) -> Backend:
    return Backend(name=BackendName("b"), url=url, **fields)


def trusting(ca: trustme.CA, **more: Any) -> ServerTLS:
    return ServerTLS(ca_data=ca.cert_pem.bytes(), **more)


# Data in place of files


def test_backend_is_trusted_when_its_ca_is_nothing_but_one(tmp_path: Path) -> None:
    authority = BareAuthority(tmp_path)

    async def scenario() -> Any:
        async with FakeCluster({}, tls=authority.context) as server:
            return await root_of(backend_at(server.url, tls=ServerTLS(ca_file=authority.ca_file)))

    assert isinstance(asyncio.run(scenario()), BackendRoot)


def test_backend_is_trusted_when_an_intermediate_authority_is_all_that_is_given(ca: trustme.CA) -> None:
    child = ca.create_child_ca()

    async def scenario() -> Any:
        async with FakeCluster({}, tls=serving_tls(child, "127.0.0.1")) as server:
            return await root_of(backend_at(server.url, tls=trusting(child)))

    assert isinstance(asyncio.run(scenario()), BackendRoot)


def test_inline_ca_verifies_the_backend(ca: trustme.CA) -> None:
    async def scenario() -> tuple[Any, Any]:
        async with FakeCluster({}, tls=serving_tls(ca, "127.0.0.1")) as server:
            good = await root_of(backend_at(server.url, tls=trusting(ca)), times=2)
            return good, await root_of(backend_at(server.url, tls=trusting(trustme.CA())))

    good, bad = asyncio.run(scenario())
    assert isinstance(good, BackendRoot)
    assert bad.cause is Cause.BAD_TLS


@pytest.mark.parametrize(
    "spread",
    [
        lambda cert, key, folder: {"cert_data": cert, "key_data": key},
        lambda cert, key, folder: {"cert_data": cert, "key_file": folder / "key"},
        lambda cert, key, folder: {"cert_file": folder / "cert", "key_data": key},
        lambda cert, key, folder: {"cert_file": folder / "cert", "key_file": folder / "key"},
        lambda cert, key, folder: {"cert_data": cert + key},
    ],
    ids=["data", "cert-data", "key-data", "files", "one-piece"],
)
def test_client_certificate_is_shown(
    spread: Callable[..., dict[str, Any]], ca: trustme.CA, tmp_path: Path
) -> None:
    leaf = ca.issue_cert("client.example", common_name="jane")
    cert, key = leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()
    (tmp_path / "cert").write_bytes(cert)
    (tmp_path / "key").write_bytes(key)

    async def scenario() -> list[str | None]:
        tls = serving_tls(ca, "127.0.0.1", wants_certificate=True)
        async with FakeCluster({}, tls=tls) as server:
            backend = backend_at(server.url, tls=trusting(ca, **spread(cert, key, tmp_path)))
            with blockbuster_ctx():
                assert isinstance(await root_of(backend, times=2), BackendRoot)
            return server.certificates

    assert asyncio.run(scenario()) == ["jane", "jane"]


def test_key_leaves_no_file_behind(ca: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    leaf = ca.issue_cert("client.example")
    tls = ServerTLS(cert_data=leaf.cert_chain_pems[0].bytes(), key_data=leaf.private_key_pem.bytes())
    for is_in_memory in (True, False):
        if not is_in_memory:
            monkeypatch.delattr("os.memfd_create", raising=False)
        TrustStore(tls).context()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tls", "said"),
    [
        (ServerTLS(ca_data=b""), "the CA certificates given inline"),
        (ServerTLS(ca_data=b"no PEM"), "the CA certificates given inline"),
        (ServerTLS(ca_data=b"\xff"), "the CA certificates given inline"),
        (ServerTLS(cert_data=b"no PEM", key_data=SECRET.encode()), "the client certificate given inline"),
        (ServerTLS(cert_data=b"no PEM"), "the client certificate given inline"),
    ],
)
def test_inline_data_is_refused_without_repeating_it(tls: ServerTLS, said: str) -> None:
    with pytest.raises(UnusableCredentials) as refused:
        TrustStore(tls).context()
    assert refused.value.cause == "bad_tls"
    assert str(refused.value).startswith(said)
    assert SECRET not in str(refused.value) + repr(tls)


def test_secrets_are_in_no_repr() -> None:
    found = Credentials(token=SECRET, basic=("jane", SECRET))
    backend = backend_at("http://x", credentials=found, proxy_url=f"http://jane:{SECRET}@p:1")
    assert SECRET not in repr(backend)


# What is shown


def test_fields_are_those_of_the_configuration() -> None:
    impersonation = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))

    async def scenario() -> list[list[tuple[str, str]]]:
        async with FakeCluster({}) as server:
            for found in (
                Credentials(token="t", impersonation=impersonation),
                Credentials(basic=("jane", "p:w"), remote_user="front"),
                Credentials(),
            ):
                await root_of(backend_at(server.url, credentials=found))
            usual = {"host", "accept", "accept-encoding", "user-agent"}
            return [
                [(name, value) for name, value in fields if name.lower() not in usual]
                for fields in server.header_fields
            ]

    basic = base64.b64encode(b"jane:p:w").decode()
    assert asyncio.run(scenario()) == [
        [("Authorization", "Bearer t"), *impersonation],
        [("X-Remote-User", "front"), ("Authorization", f"Basic {basic}")],
        [],
    ]


def test_inline_token_without_tls_is_told(caplog: pytest.LogCaptureFixture) -> None:
    BackendClient(
        backend_at("http://10.0.0.1", credentials=Credentials(token=SECRET)),
        polling=POLLING,
        limits=LimitSettings(),
    )
    assert "sent without TLS" in caplog.text
    assert SECRET not in caplog.text


# Proxies


@pytest.mark.parametrize("is_tls", [True, False], ids=["https", "http"])
async def test_backend_is_reached_through_its_proxy(is_tls: bool, ca: trustme.CA) -> None:
    tls = serving_tls(ca, "127.0.0.1") if is_tls else None
    async with FakeCluster({}, tls=tls) as server, ConnectProxy() as proxy:
        answer = await root_of(backend_at(server.url, tls=trusting(ca), proxy_url=proxy.url))
        assert isinstance(answer, BackendRoot)
        address = server.url.split("//")[1]
        wanted = f"CONNECT {address} HTTP/1.1" if is_tls else f"GET {server.url}/openapi/v3 HTTP/1.1"
        assert proxy.seen == [wanted]


def test_name_behind_a_proxy_is_the_proxy_s_to_resolve(ca: trustme.CA) -> None:
    async def scenario() -> Any:
        async with FakeCluster({}, tls=serving_tls(ca, "api.example")) as server:
            port = int(server.url.rsplit(":", 1)[1])
            async with ConnectProxy(target=("127.0.0.1", port)) as proxy:
                tls = trusting(ca, server_name="api.example")
                found = backend_at("https://no-such-host.invalid:6443", tls=tls, proxy_url=proxy.url)
                return await root_of(found), proxy.seen

    answer, seen = asyncio.run(scenario())
    assert isinstance(answer, BackendRoot)
    assert seen == ["CONNECT no-such-host.invalid:6443 HTTP/1.1"]


def test_proxy_may_speak_tls_itself(ca: trustme.CA) -> None:
    """Its certificate is checked against the backend's CA, as in Go's transport."""

    async def scenario() -> Any:
        tls = serving_tls(ca, "127.0.0.1")
        async with FakeCluster({}, tls=tls) as server, ConnectProxy(tls=tls) as proxy:
            assert proxy.url.startswith("https:")
            return await root_of(backend_at(server.url, tls=trusting(ca), proxy_url=proxy.url))

    assert isinstance(asyncio.run(scenario()), BackendRoot)


@pytest.mark.parametrize("is_tls", [True, False], ids=["https", "http"])
async def test_proxy_gets_its_password_and_the_backend_does_not(is_tls: bool, ca: trustme.CA) -> None:
    tls = serving_tls(ca, "127.0.0.1") if is_tls else None
    async with FakeCluster({}, tls=tls) as server, ConnectProxy(password=f"jane:{SECRET}") as proxy:
        url = proxy.url.replace("//", f"//jane:{SECRET}@")
        answer = await root_of(backend_at(server.url, tls=trusting(ca), proxy_url=url))
        assert isinstance(answer, BackendRoot)
        if is_tls:
            assert not [name for name, _ in server.header_fields[0] if name.startswith("Proxy")]


def test_proxy_that_refuses_is_told_without_its_password(ca: trustme.CA) -> None:
    async def scenario() -> tuple[Any, Any]:
        async with FakeCluster({}, tls=serving_tls(ca, "127.0.0.1")) as server:
            async with ConnectProxy(password="other") as proxy:
                url = proxy.url.replace("//", f"//jane:{SECRET}@")
                backend = backend_at(server.url, tls=trusting(ca), proxy_url=url)
                refused = await root_of(backend)
            return refused, await root_of(backend)

    refused, away = asyncio.run(scenario())
    assert refused == Failure(Cause.CREDENTIALS, "the proxy answered 407")
    assert away == Failure(Cause.REFUSED, "no connection to the proxy: connection refused")


async def test_watch_goes_through_the_proxy(ca: trustme.CA) -> None:
    async with FakeCluster(tls=serving_tls(ca, "127.0.0.1")) as server, ConnectProxy() as proxy:
        client = ApiClient(backend_at(server.url, tls=trusting(ca), proxy_url=proxy.url), polling=POLLING)
        server.put(CRDS, {"metadata": {"name": "a"}})
        events: list[Any] = []
        done = Failure(Cause.INTERNAL, "enough")

        def take(found: list[Any]) -> Failure:
            events.extend(found)
            return done

        target = f"{CRDS}?watch=1&resourceVersion=1000"
        ended = await client.events(target, lasting=5.0, silence=9.0, opened=lambda: None, take=take)
        assert ended is done
        assert [event["object"]["metadata"]["name"] for event in events] == ["a"]
        await client.close()

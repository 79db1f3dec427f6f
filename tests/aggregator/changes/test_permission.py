"""A stream of changes ends with the permission of whoever reads it, in every mode of authentication."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import trustme
import yaml

from data.compared import definition
from deadline import DEADLINE
from fakes.cluster import FakeCluster
from running.service import Client, service
from specmux_aggregator.auth import client_certificates, token_file
from specmux_aggregator.changes.events import MOST_OF_ADDRESS, Feed, Followers
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.config.settings import (
    AuthSettings,
    ChangeSettings,
    KubernetesSettings,
    ListenSettings,
)
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.backend import BackendKind as BackendKind
from specmux_aggregator.server import listener

ALICE = {"Authorization": "Bearer alice-token"}
REVIEWING = KubernetesSettings(in_cluster=True, api_services=False, crds=False, apiserver=False)


def write(folder: Path, *names: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    (folder / "widgets.yaml").write_text(yaml.safe_dump(definition(schema)))


@asynccontextmanager
async def changing(folder: Path, **settings: Any) -> AsyncIterator[Client]:
    (folder / "crds").mkdir()
    write(folder / "crds", "a")
    crds = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=folder / "crds")
    async with service(crds, changes=ChangeSettings(settle=0.02), **settings) as client:
        await client.ready()
        assert client.app.history is not None
        history = client.app.history
        await client.until(lambda: history.is_settled, "settled")
        yield client


async def ends_without_a_change(
    client: Client,
    folder: Path,
    session: aiohttp.ClientSession,
    revoke: Callable[[], Awaitable[None]],
    **fields: str,
) -> None:
    """Follow, take the permission away, change a definition: the stream ends, and says nothing of that."""
    target = f"{client.base}/openapi/changes"
    accepted = {"Accept": "text/event-stream", **fields}
    async with asyncio.timeout(DEADLINE), session.get(target, headers=accepted) as answer:
        assert answer.status == 200
        write(folder / "crds", "a", "b")
        text = b""
        while b"spec.b" not in text:
            text += await answer.content.readany()
        await revoke()
        write(folder / "crds", "a", "b", "c")
        text = await answer.content.read()
        assert b"spec.c" not in text
        assert b"event: reset" in text


async def refused(client: Client, **fields: str) -> None:
    """At the path of the stream, since each path has a review of its own, which counts for a while."""
    async with asyncio.timeout(DEADLINE):
        while (await client.get("/openapi/changes", **fields))[0] == 200:
            await asyncio.sleep(0.02)


async def test_stream_ends_with_its_token_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\nother,other\n")
    auth = AuthSettings(mode="token-file", token_file=path)

    async def revoke() -> None:
        path.write_text("other,other\n")
        await refused(client, **ALICE)

    async with changing(tmp_path, auth=auth) as client, aiohttp.ClientSession() as session:
        await ends_without_a_change(client, tmp_path, session, revoke, **ALICE)


@pytest.mark.parametrize("taken", ["token", "access"])
async def test_stream_ends_with_its_review(tmp_path: Path, taken: str) -> None:
    cluster = FakeCluster({})
    alice = {"user": {"username": "alice"}, "authenticated": True}
    cluster.review_token = lambda token: alice if token == "alice-token" else None
    cluster.allows = lambda spec: True

    async def revoke() -> None:
        if taken == "token":
            cluster.review_token = lambda token: None
        else:
            cluster.allows = lambda spec: False
        await refused(client, **ALICE)

    auth = AuthSettings(mode="kubernetes", cache_seconds=0.1)
    async with (
        cluster,
        changing(
            tmp_path, auth=auth, kubernetes=REVIEWING, cluster=Backend(name=BackendName("k"), url=cluster.url)
        ) as client,
        aiohttp.ClientSession() as session,
    ):
        await ends_without_a_change(client, tmp_path, session, revoke, **ALICE)


@pytest.mark.parametrize("taken", ["ca", "certificate"])
async def test_stream_ends_with_its_certificate(
    tmp_path: Path, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CERTIFICATE_INTERVAL", 0.05)
    servers, clients, others = trustme.CA(), trustme.CA(), trustme.CA()
    pem, ca_file = tmp_path / "tls.pem", tmp_path / "clients.crt"
    servers.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    clients.cert_pem.write_to_path(ca_file)
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    servers.configure_trust(context)
    clients.issue_cert("alice@example.org", not_after=ends).configure_cert(context)
    listen = ListenSettings(port=0, shutdown_timeout=1.0, tls_cert_file=pem, tls_key_file=pem)
    auth = AuthSettings(mode="mtls", client_ca_file=ca_file)

    async with changing(tmp_path, auth=auth, listen=listen) as client:
        client.base = client.base.replace("http:", "https:")
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def revoke() -> None:
                if taken == "ca":
                    others.cert_pem.write_to_path(ca_file)
                else:
                    monkeypatch.setattr(
                        client_certificates, "time", SimpleNamespace(time=lambda: ends.timestamp() + 1)
                    )
                async with asyncio.timeout(DEADLINE):
                    while await is_let_in():
                        await asyncio.sleep(0.05)

            async def is_let_in() -> bool:
                try:
                    async with session.get(f"{client.base}/openapi/v3") as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await ends_without_a_change(client, tmp_path, session, revoke)


async def test_address_has_a_share_of_followers() -> None:
    followers = Followers(ChangeLog(most_entries=3, most_bytes=1 << 20))
    taken = [followers.add(Feed.CHANGES, None, b"one") for _ in range(MOST_OF_ADDRESS)]
    assert None not in taken
    assert followers.add(Feed.CHANGES, None, b"one") is None
    assert followers.add(Feed.CHANGES, None, b"two") is not None
    assert taken[0] is not None
    followers.remove(taken[0])
    followers.remove(taken[0])
    assert followers.add(Feed.CHANGES, None, b"one") is not None
    assert followers.add(Feed.CHANGES, None, b"one") is None

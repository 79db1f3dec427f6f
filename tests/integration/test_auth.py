"""Who may ask, with the whole service behind it: every path, every kind of answer, and what is told of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from deadline import DEADLINE
from fakes.apiserver import document, swagger
from fakes.cluster import FakeCluster
from running.process import specmux
from running.service import Client, backend, service
from specmux_aggregator.app import App
from specmux_aggregator.auth import token_file
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import (
    AuthSettings,
    KubernetesSettings,
    ListenSettings,
    ProxySettings,
    Settings,
)
from specmux_aggregator.errors import InvalidConfig, SpecmuxError

APPS = "apis/apps/v1"
ALICE = {"Authorization": "Bearer alice-token"}
REVIEWING = KubernetesSettings(in_cluster=True, api_services=False, crds=False, apiserver=False)


def known(token: str) -> dict[str, Any] | None:
    name = token.removesuffix("-token")
    return {"user": {"username": name}, "authenticated": True} if token.endswith("-token") else None


@asynccontextmanager
async def reviewed(
    allows: Callable[[dict[str, Any]], bool] = lambda spec: True, **settings: Any
) -> AsyncIterator[tuple[FakeCluster, Client]]:
    """One backend with a document, whose apiserver reviews the callers, too."""
    cluster = FakeCluster({APPS: document(APPS)}, swagger("apis/old/v1"))
    cluster.review_token, cluster.allows = known, allows
    async with cluster:
        made = {
            "auth": AuthSettings(mode="kubernetes", cache_seconds=0.3),
            "kubernetes": REVIEWING,
            **settings,
        }
        source = backend("a", cluster.url)
        async with service(source, cluster=source, **made) as client:
            await client.ready()
            await serves(client, "/readyz")
            yield cluster, client


async def serves(client: Client, target: str, **fields: str) -> None:
    """Return once the target is answered 200."""
    async with asyncio.timeout(DEADLINE):
        while (await client.get(target, **fields))[0] != 200:
            await asyncio.sleep(0.02)


async def hash_url(client: Client) -> str:
    _, _, body = await client.get("/openapi/v3", **ALICE)
    return str(orjson.loads(body)["paths"][APPS]["serverRelativeURL"])


async def test_everything_but_health_needs_leave_and_is_private() -> None:
    async with reviewed() as (_, client):
        url = await hash_url(client)
        etag = (await client.get(url, **ALICE))[1]["ETag"]
        root = (await client.get("/openapi/v3", **ALICE))[1]["ETag"]
        await serves(client, "/apis", **ALICE)
        kept = {
            url: (200, {}, "private, max-age=31536000, immutable"),
            f"{url}&x": (200, {}, "private, max-age=31536000, immutable"),
            f"/openapi/v3/{APPS}": (200, {}, "private, no-cache"),
            "/openapi/v3": (304, {"If_None_Match": root}, "private, no-cache"),
            url.replace("hash=", "x=1&hash="): (
                304,
                {"If_None_Match": etag},
                "private, max-age=31536000, immutable",
            ),
            "/apis": (200, {}, "private, no-cache"),
            "/openapi/v2": (200, {}, "private, no-cache"),
            f"/openapi/v3/{APPS}?hash=0": (301, {}, "no-store"),
            "/openapi/v3/apis/none/v1": (404, {}, "no-store"),
            "/nothing": (404, {}, "no-store"),
            f"{url}&y": (406, {"Accept": "text/html"}, "no-store"),
            f"{url}&z": (412, {"If_Match": '"x"'}, "no-store"),
            "/metrics": (200, {}, "no-store"),
            "/status": (200, {}, "no-store"),
        }
        for target, (code, fields, cache) in kept.items():
            status, headers, _ = await client.get(target, **ALICE, **fields)
            assert (status, headers["Cache-Control"]) == (code, cache), target
            assert "Expires" not in headers
            for stranger in ({}, {"Authorization": "Bearer wrong"}):
                status, headers, body = await client.get(target, **stranger, **fields)
                assert (status, headers["Cache-Control"]) == (401, "no-store"), target
                assert orjson.loads(body)["reason"] == "Unauthorized"
                assert "ETag" not in headers
            status, _, _ = await client.get(target, method="POST")
            assert status == 401
        for target in ("/livez", "/readyz"):
            assert (await client.get(target))[0] == 200


async def test_paths_are_asked_about_one_by_one() -> None:
    def allows(spec: dict[str, Any]) -> bool:
        path = spec["nonResourceAttributes"]["path"]
        return spec["user"] == "ops" or path == "/openapi" or path.startswith("/openapi/")

    async with reviewed(allows) as (_, client):
        for target in ("/openapi/v3", "/openapi/v2", await hash_url(client)):
            assert (await client.get(target, **ALICE))[0] == 200
        for target in ("/metrics", "/status", "/apis", "/api", "/version", "/"):
            status, _, body = await client.get(target, **ALICE)
            assert status == 403, target
            assert orjson.loads(body)["message"].startswith('user "alice" cannot get path')
        # Nothing is resolved: a role for /openapi/* opens what has exactly such a name, and nothing has.
        assert (await client.get("/openapi/../status", **ALICE))[0] == 404
        for target in ("/metrics", "/status"):
            assert (await client.get(target, Authorization="Bearer ops-token"))[0] == 200


async def test_reviews_that_fail_are_told_by_readyz_and_metrics(caplog: pytest.LogCaptureFixture) -> None:
    auth = AuthSettings(mode="kubernetes", cache_seconds=0.3, review_grace=0)
    async with reviewed(auth=auth) as (cluster, client):
        assert (await client.get("/openapi/v3", **ALICE))[0] == 200
        await cluster.stop()
        await asyncio.sleep(0.4)
        status, headers, _ = await client.get("/openapi/v3", **ALICE)
        assert (status, headers["Retry-After"]) == (503, "1")
        status, _, body = await client.get("/readyz")
        assert (status, body) == (
            503,
            b"nobody can be let in: the cluster's token review fails (refused)\n",
        )
        assert (await client.get("/livez"))[0] == 200
        await cluster.start()
        await serves(client, "/readyz")
        assert (await client.get("/openapi/v3", **ALICE))[0] == 200
        text = (await client.get("/metrics", **ALICE))[2].decode()
        assert "specmux_auth_up 1.0" in text
        assert 'specmux_auth_refusals_total{reason="unavailable"} 1.0' in text
        told = text + (await client.get("/status", **ALICE))[2].decode() + caplog.text
        assert "alice" not in told


async def test_apiserver_that_is_away_keeps_nobody_from_reading_who_was_let_in() -> None:
    async with reviewed() as (cluster, client):
        target = await hash_url(client)
        assert (await client.get(target, **ALICE))[0] == 200
        await cluster.stop()
        await asyncio.sleep(0.4)
        for _ in range(5):
            assert (await client.get("/openapi/v3", **ALICE))[0] == 200
            assert (await client.get(target, **ALICE))[0] == 200
            assert (await client.get("/readyz"))[0] == 200
        assert (await client.get("/openapi/v3", Authorization="Bearer bob-token"))[0] == 503


async def test_apiserver_that_is_away_keeps_nobody_from_what_they_did_not_read_before() -> None:
    """Who was let in for a root reads what lies below it, and the other roots that they are allowed."""

    def allows(spec: dict[str, Any]) -> bool:
        path = spec["nonResourceAttributes"]["path"]
        return spec["user"] == "alice" and path.startswith(("/openapi", "/api"))

    async with reviewed(allows) as (cluster, client):
        assert (await client.get("/openapi/v3", **ALICE))[0] == 200
        bob = {"Authorization": "Bearer bob-token"}
        assert (await client.get("/openapi/v3", **bob))[0] == 403
        target = await hash_url(client)
        async with asyncio.timeout(DEADLINE):
            while sum(review["kind"] == "SubjectAccessReview" for review in cluster.reviews) < 6:
                await asyncio.sleep(0.02)
        await cluster.stop()
        await asyncio.sleep(0.4)
        for path in ("/apis", "/api", "/apis/apps/v1"):
            assert (await client.get(path, **ALICE))[0] == 200, path
        assert (await client.get(target, **ALICE))[0] == 200
        # Allowed, and its backend is away too.
        other = f"{target.partition('?')[0]}?hash=A&redirected=1"
        assert (await client.get(other, **ALICE))[0] == 200
        assert (await client.get("/openapi/v3/apis/none/v1", **ALICE))[0] in (404, 503)
        assert (await client.get("/version", **ALICE))[0] in (403, 503)
        assert (await client.get(target, **bob))[0] in (403, 503)
        assert (await client.get("/status", **ALICE))[0] == 503


async def test_resource_goes_to_its_backend_for_whoever_is_known() -> None:
    """The backend authorises it, by the client's own token: a SubjectAccessReview would ask about a path."""
    target = "/apis/apps/v1/deployments"

    async with reviewed(lambda spec: False, proxy=ProxySettings(resources=True)) as (cluster, client):
        cluster.pages[target] = b'{"items": []}'
        for _ in range(2):
            status, _, body = await client.get(target, **ALICE, X_Remote_User="root")
            assert (status, body) == (200, b'{"items": []}')
        for seen in cluster.seen(target):
            assert seen.headers["Authorization"] == "Bearer alice-token"
            assert "X-Remote-User" not in seen.headers
        count = len(cluster.seen(target))
        for stranger in ({}, {"Authorization": "Bearer wrong"}):
            assert (await client.get(target, **stranger))[0] == 401
        assert len(cluster.seen(target)) == count
        for other in ("/openapi/v2", "/openapi/v3", "/apis/apps/v1", "/apis/apps"):
            assert (await client.get(other, **ALICE))[0] == 403, other
        assert (await client.get("/api/v1/../../openapi/v3", **ALICE))[0] in (400, 403)


def test_process_takes_the_kubeconfigs_cluster_and_shows_it_its_own_token(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = FakeCluster({APPS: document(APPS)})
        cluster.review_token, cluster.allows, cluster.tokens = known, lambda spec: True, {"ours"}
        async with cluster:
            config = cluster.kubeconfig(tmp_path, token="ours")
            await asyncio.to_thread(asked, config)
            for seen in cluster.seen("/apis/auth"):
                assert seen.headers["Authorization"] == "Bearer ours"

    def asked(config: Path) -> None:
        with specmux(
            "serve", "--kubeconfig", str(config), "--auth-mode=kubernetes", "--listen-port=0"
        ) as run:
            run.until_ready()
            assert run.get("/openapi/v3")[0] == 401
            assert run.get("/openapi/v3", **ALICE)[0] == 200
            assert "alice" not in run.output

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--auth-mode=kubernetes",), "auth.mode: is kubernetes, which needs kubernetes.in_cluster"),
        (("--auth-mode=token-file", "--auth-token-file=none"), "auth.token_file: none: No such file"),
        (("--auth-mode=mtls",), "auth.mode: is mtls, which needs auth.client_ca_file"),
    ],
)
def test_service_without_what_the_mode_needs_ends_with_3(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = CliRunner().invoke(main, ["serve", "--directory", str(tmp_path), "--listen-port=0", *arguments])
    assert (result.exit_code, said in result.output) == (3, True), result.output


@pytest.mark.parametrize(
    ("address", "mode", "said"),
    [
        (
            "0.0.0.0",
            "none",
            "everybody who reaches 0.0.0.0 port {port} may read every document: auth.mode is none",
        ),
        ("::", "token-file", "bearer tokens cross the network to :: port {port} in the clear"),
        ("127.0.0.1", "none", None),
        ("::1", "token-file", None),
    ],
)
async def test_start_warns_of_what_is_given_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, address: str, mode: str, said: str | None
) -> None:
    (tmp_path / "tokens").write_text("one,alice\n")
    auth = AuthSettings(mode=mode, token_file=tmp_path / "tokens" if mode == "token-file" else None)

    app = App(Settings(listen=ListenSettings(address=address, port=0), auth=auth), None)
    _, port = await app.start()
    await app.stop()
    said = said and said.format(port=port)
    lines = [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]
    assert lines == [line for line in lines if said is not None and line.startswith(said)]
    assert (said is None) is not any(said in line for line in lines if said is not None)


async def test_nothing_is_given_away_by_an_address_that_cannot_be_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App(Settings(listen=ListenSettings(address="nope.invalid", port=0)), None)
    with pytest.raises(SpecmuxError, match="does not resolve"):
        await app.start()
    await app.stop()
    assert [item for item in caplog.records if "may read" in item.getMessage()] == []


async def test_token_file_guards_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    path = tmp_path / "tokens"
    with pytest.raises(InvalidConfig, match="No such file"):
        App(Settings(auth=AuthSettings(mode="token-file", token_file=path)), None)
    path.write_text("alice-token,alice\n")

    cluster = FakeCluster({APPS: document(APPS)})
    auth = AuthSettings(mode="token-file", token_file=path)
    async with cluster, service(backend("a", cluster.url), auth=auth) as client:
        await client.ready()
        await serves(client, "/readyz")
        assert (await client.get("/openapi/v3"))[0] == 401
        status, headers, _ = await client.get(await hash_url(client), **ALICE)
        assert (status, headers["Cache-Control"]) == (200, "private, max-age=31536000, immutable")
        path.write_text("other,alice\n")
        while (await client.get("/openapi/v3", **ALICE))[0] != 401:
            await asyncio.sleep(0.02)
        assert (await client.get("/openapi/v3", Authorization="Bearer other"))[0] == 200

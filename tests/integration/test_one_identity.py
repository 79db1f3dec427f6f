"""Many parts of the service ask the same apiserver; it is one identity that they ask as."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

import orjson
import pytest
import trustme
from aiohttp import web

from fakes.apiserver import document
from fakes.cluster import FakeCluster
from running.cluster_service import APPS, until_ready
from running.service import backend, service
from specmux_aggregator.config.settings import AuthSettings, KubernetesSettings, ProxySettings
from specmux_cache.access.server_access import Credentials, ExecPlugin, ServerTLS

OURS, THEIRS = "token-of-the-plugin", "token-of-a-client"
THINGS = f"/{APPS}/namespaces/a/things"


def counting_plugin(folder: Path) -> tuple[ExecPlugin, Path]:
    """A program that prints a token for good, and the file with a line for each of its runs."""
    printed = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": OURS},
    }
    runs, path = folder / "runs", folder / "plugin"
    path.write_text(f"#!/bin/sh\necho run >> {runs}\necho '{orjson.dumps(printed).decode()}'\n")
    path.chmod(0o700)
    return ExecPlugin(command=str(path)), runs


def test_plugin_runs_once_however_many_parts_of_the_service_ask(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin, runs = counting_plugin(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def things(request: web.Request) -> web.StreamResponse:
        return web.json_response({"items": []})

    async def scenario() -> None:
        async with FakeCluster({APPS: document(APPS)}, swagger_document=b"{}", tls=context) as cluster:
            cluster.tokens = {OURS, THEIRS}
            cluster.review_token = lambda token: {"user": {"username": "jane"}} if token == THEIRS else None
            cluster.allows = lambda spec: True
            cluster.answers[THINGS] = things
            server = backend(
                "kubernetes",
                cluster.url,
                tls=ServerTLS(insecure_skip_verify=True),
                credentials=Credentials(exec_plugin=plugin),
            )
            async with service(
                cluster=server,
                kubernetes=KubernetesSettings(in_cluster=True),
                auth=AuthSettings(mode="kubernetes"),
                proxy=ProxySettings(resources=True),
            ) as client:
                await until_ready(client)
                asking = {"Authorization": f"Bearer {THEIRS}"}
                assert (await client.get(f"/openapi/v3/{APPS}", **asking))[0] == 200
                assert (await client.get("/apis", **asking))[0] == 200
                assert (await client.get("/openapi/v2", **asking))[0] == 200
                assert runs.read_text() == "run\n"
                asked_as_us = {seen.target.partition("?")[0] for seen in cluster.requests}
                assert (await client.get(THINGS, **asking))[0] == 200
            by_token = {
                token: {
                    seen.target.partition("?")[0]
                    for seen in cluster.requests
                    if seen.headers.get("Authorization") == f"Bearer {token}"
                }
                for token in (OURS, THEIRS)
            }
            assert by_token == {OURS: asked_as_us, THEIRS: {THINGS}}

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert runs.read_text() == "run\n"
    assert caplog.text.count("its certificate is not verified") == 1

"""Discovery where backends contradict each other, fail, or have not answered yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.discovery import V2, resource
from integration.discovered import APPS, BATCH, complete, is_shown, items, run, server, shown
from running.service import QUICK, backend, directory, service
from specmux_aggregator.config.settings import DiscoverySettings
from specmux_converters.group_versions import GroupVersion


def test_contested_group_version_belongs_to_the_owner_of_its_document() -> None:
    async def scenario() -> None:
        one, two = server(APPS), server(APPS)
        two.discovery.lists = {APPS: [resource(APPS, "theirs", "Theirs")]}
        async with (
            serving(one),
            serving(two),
            service(backend("a", one.url), backend("b", two.url, priority=1)) as client,
        ):
            await complete(client)
            await client.until(is_shown(client, {APPS: "b Current"}))
            assert client.app.publisher.current.entries[GroupVersion(APPS)].owner == "b"
            assert (await items(client))["apps/v1"]["resources"][0]["resource"] == "theirs"
            assert (await client.status())["discovery"]["conflicts"] == [
                {"groupVersion": APPS, "winner": "b", "losers": ["a"]}
            ]
            await client.app.reconfigure(replace(client.app.settings, backends=(backend("a", one.url),)))
            await client.until(is_shown(client, {APPS: "a Current"}))

    run(scenario)


def test_nothing_is_said_before_every_backend_was_asked_once() -> None:
    async def scenario() -> None:
        one, slow = server(APPS), server(BATCH)
        slow.discovery.delay = 0.3
        async with (
            serving(one),
            serving(slow),
            service(backend("a", one.url), backend("b", slow.url)) as client,
        ):
            await client.ready()
            status, headers, _ = await client.get("/apis", Accept=V2)
            assert (status, headers["Retry-After"]) == (503, "1")
            assert (await client.get("/readyz"))[::2] == (503, b"waiting for the first answer of: b\n")
            await complete(client)
            assert list(await items(client)) == ["apps/v1", "batch/v1"]
            assert (await client.get("/readyz"))[0] == 200

    run(scenario)


def test_dead_backend_holds_nobody_up_and_its_configured_group_versions_are_stale() -> None:
    async def scenario() -> None:
        one = server(APPS)
        owned = frozenset({GroupVersion("apis/dead/v1")})
        dead = backend("dead", "http://127.0.0.1:1", group_versions=owned)
        async with serving(one), service(backend("a", one.url), dead) as client:
            await complete(client)
            assert shown(client) == {APPS: "a Current", "apis/dead/v1": "dead Stale"}
            assert "resources" not in (await items(client))["dead/v1"]

    run(scenario)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"{}", b'{"kind":"APIGroupDiscoveryList"}', b'{"a":' * 300 + b"1" + b"}" * 300],
)
def test_bad_list_is_a_failure_of_its_backend_alone(body: bytes) -> None:
    async def scenario() -> None:
        one, bad = server(APPS), server(BATCH)

        async def answer(request: Any, keys: Any) -> Any:
            return web.Response(body=body, content_type="application/json")

        bad.discovery.answer = answer  # type: ignore[method-assign]
        async with (
            serving(one),
            serving(bad),
            service(backend("a", one.url), backend("b", bad.url)) as client,
        ):
            await complete(client)
            assert shown(client) == {APPS: "a Current"}
            report = (await client.status())["discovery"]["backends"]["b"]
            assert (report["state"], report["error"]["cause"]) == ("failed", "bad_body")

    run(scenario)


def test_restart_of_discovery_is_followed_when_documents_are_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "apis" / "g" / "v1.json"
    path.parent.mkdir(parents=True)

    def write(kind: str) -> None:
        operation = {
            "x-kubernetes-action": "list",
            "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": kind},
            "responses": {"200": {"description": "OK"}},
        }
        tree = orjson.loads(document("apis/g/v1"))
        tree["paths"] = {"/apis/g/v1/things": {"get": operation}}
        path.write_bytes(orjson.dumps(tree))

    async def scenario() -> None:
        write("One")
        async with service(directory("files", tmp_path)) as client:

            def kinds() -> list[str]:
                assert client.app.discovery is not None
                versions = client.app.discovery.index.directory.versions()
                return [item.kind.kind for version in versions for item in version.resources]

            await client.until(lambda: kinds() == ["One"])
            write("Two")
            await client.until(lambda: kinds() == ["Two"])

    run(scenario)


def test_paths_are_not_ours_when_discovery_is_off() -> None:
    async def scenario() -> None:
        one = server(APPS)
        async with (
            serving(one),
            service(backend("a", one.url), discovery=DiscoverySettings(enabled=False)) as client,
        ):
            await client.ready()
            assert (await client.get("/apis"))[0] == 404
            assert (await client.status())["discovery"] is None
            assert one.discovery.log == []

    run(scenario)


def test_answers_at_once_and_from_the_memo_follow_discovery() -> None:
    async def scenario() -> None:
        one = server(APPS)
        async with serving(one), service(backend("a", one.url), polling=QUICK) as client:
            await complete(client)
            for _ in range(5):  # known by its bytes from the third on
                before = await client.get("/apis", Accept=V2, Accept_Encoding="gzip")
            assert client.app.server.stats.snapshot().memo_hits > 0
            assert one.documents is not None
            one.documents[BATCH] = document(BATCH)
            await client.until(is_shown(client, {APPS: "a Current", BATCH: "a Current"}))
            after = await client.get("/apis", Accept=V2, Accept_Encoding="gzip")
            assert (after[0], after[1]["ETag"] != before[1]["ETag"]) == (200, True)

    run(scenario)


def test_documents_of_an_earlier_run_tell_what_a_dead_backend_has(tmp_path: Path) -> None:
    operation = {
        "x-kubernetes-action": "list",
        "x-kubernetes-group-version-kind": {"group": "batch", "version": "v1", "kind": "Thing"},
        "responses": {"200": {"description": "OK"}},
    }
    tree = orjson.loads(document(BATCH))
    tree["paths"] = {f"/{BATCH}/things": {"get": operation}}

    async def scenario() -> None:
        one = FakeAPIServer({APPS: document(APPS), BATCH: orjson.dumps(tree)})
        async with serving(one):
            made = backend("a", one.url)
            async with service(made, state=tmp_path) as client:
                await client.ready()
                await client.get((await client.paths())[BATCH])
        async with service(made, state=tmp_path) as client:
            await complete(client)
            # The document of the other was never asked for, so nobody kept it.
            assert shown(client) == {APPS: "a Stale", BATCH: "a Current"}
            assert (await items(client))["batch/v1"]["resources"][0]["resource"] == "things"
            assert (await client.status())["discovery"]["backends"]["a"]["error"]["cause"] == "refused"

    run(scenario)

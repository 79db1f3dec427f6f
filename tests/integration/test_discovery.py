"""Discovery of real backends over loopback, merged and served by a whole service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.discovery import V2, resource
from running.service import QUICK, Client, backend, directory, service
from specmux_aggregator.config.settings import Discovery
from specmux_aggregator.model.backend import Backend, BackendName, Kind
from specmux_converters.group_versions import GroupVersion

APPS, BATCH, CORE = "apis/apps/v1", "apis/batch/v1", "api/v1"
SOON = Discovery(interval=0.1, stale_grace=60.0)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def server(*keys: str) -> FakeAPIServer:
    return FakeAPIServer({key: document(key) for key in keys})


async def items(client: Client, path: str = "/apis") -> dict[str, Any]:
    """Version → what the aggregated form says of it."""
    status, headers, body = await client.get(path, Accept=V2)
    assert (status, headers["Content-Type"]) == (200, V2)
    found = {}
    for item in orjson.loads(body)["items"]:
        for version in item["versions"]:
            group = item["metadata"].get("name", "")
            found[f"{group}/{version['version']}".lstrip("/")] = version
    return found


async def complete(client: Client) -> None:
    await client.ready()
    await client.until(lambda: bool(client.app.discovery and client.app.discovery.index.is_complete), "asked")


def shown(client: Client) -> dict[str, str]:
    """Group-version → owner and freshness, as the service holds them."""
    assert client.app.discovery is not None
    versions = client.app.discovery.index.directory.versions()
    return {item.group_version: f"{item.owner} {item.freshness}" for item in versions}


def is_shown(client: Client, wanted: dict[str, str]) -> Callable[[], bool]:
    return lambda: shown(client) == wanted


def test_backends_are_one_for_a_client() -> None:
    async def scenario() -> None:
        one, two = server(CORE, APPS), server("apis/two.com/v1")
        two.discovery.form = "v2beta1"
        two.discovery.lists = {
            "apis/two.com/v1": [resource("apis/two.com/v1", "twos", "Two", shortNames=["tw"])]
        }
        three = FakeAPIServer(None, swagger("apis/three.com/v1"))
        three.discovery.form = "legacy"
        three.discovery.lists = {"apis/three.com/v1": [resource("apis/three.com/v1", "threes", "Three")]}
        async with (
            serving(one),
            serving(two),
            serving(three),
            service(backend("a", one.url), backend("b", two.url), backend("c", three.url)) as client,
        ):
            await complete(client)
            found = await items(client)
            assert list(found) == ["apps/v1", "three.com/v1", "two.com/v1"]
            assert {version["freshness"] for version in found.values()} == {"Current"}
            (two_resource,) = found["two.com/v1"]["resources"]
            assert (two_resource["resource"], two_resource["shortNames"]) == ("twos", ["tw"])
            assert found["three.com/v1"]["resources"][0]["responseKind"]["kind"] == "Three"
            assert list(await items(client, "/api")) == ["v1"]
            status, headers, body = await client.get("/apis/two.com/v1")
            assert (status, headers["Content-Type"]) == (200, "application/json")
            assert orjson.loads(body)["resources"][0]["name"] == "twos"
            report = (await client.status())["discovery"]
            assert {name: item["form"] for name, item in report["backends"].items()} == {
                "a": "aggregated", "b": "aggregated", "c": "legacy"
            }  # fmt: skip
            assert report["withoutOpenAPI"] == report["withoutDiscovery"] == []

    run(scenario)


def test_native_documents_are_not_downloaded_for_discovery() -> None:
    async def scenario() -> None:
        one = server(APPS)
        async with serving(one), service(backend("a", one.url)) as client:
            await complete(client)
            assert list(await items(client)) == ["apps/v1"]
            assert one.count("/openapi/v3/") == 0

    run(scenario)


def test_question_is_conditional_and_costs_no_new_answer_when_nothing_changed() -> None:
    async def scenario() -> None:
        one = server(CORE, APPS)
        async with serving(one), service(backend("a", one.url), discovery=SOON) as client:
            await complete(client)
            generation = client.app.service.generation
            await client.until(lambda: len(one.discovery.conditional) > 4)
            assert set(one.discovery.conditional) == {"/api", "/apis"}
            assert client.app.service.generation == generation

    run(scenario)


def test_legacy_lists_are_asked_only_of_what_the_backend_may_publish() -> None:
    async def scenario() -> None:
        one = server(APPS, BATCH, CORE)
        one.discovery.form = "legacy"
        owned = frozenset({GroupVersion(APPS)})
        async with serving(one), service(backend("a", one.url, group_versions=owned)) as client:
            await complete(client)
            assert shown(client) == {APPS: "a Current"}
            assert f"/{BATCH}" not in one.discovery.log
            assert "/api" not in one.discovery.log

    run(scenario)


def test_configured_group_version_is_asked_for_when_the_backend_lists_none() -> None:
    async def scenario() -> None:
        one = server(APPS)
        one.discovery.form = "legacy"
        one.discovery.failing = {"/apis": 403}
        owned = frozenset({GroupVersion(APPS)})
        async with serving(one), service(backend("a", one.url, group_versions=owned)) as client:
            await complete(client)
            assert shown(client) == {APPS: "a Current"}
            (found,) = (await items(client))["apps/v1"]["resources"]
            assert found["resource"] == "things"

    run(scenario)


def test_change_is_seen_at_once_when_the_openapi_root_changes() -> None:
    async def scenario() -> None:
        one = server(APPS)
        async with serving(one), service(backend("a", one.url)) as client:  # asked every 60 s
            await complete(client)
            assert one.documents is not None
            one.documents[BATCH] = document(BATCH)
            await client.until(is_shown(client, {APPS: "a Current", BATCH: "a Current"}))

    run(scenario)


def test_new_group_version_is_found_soon_when_its_document_came_before_its_listing() -> None:
    async def scenario() -> None:
        one = server(APPS)
        one.discovery.lists = {APPS: [resource(APPS)]}
        async with serving(one), service(backend("a", one.url)) as client:
            await complete(client)
            assert one.documents is not None
            one.documents[BATCH] = document(BATCH)
            await client.until(lambda: BATCH in client.app.publisher.current.entries)
            assert (await client.status())["discovery"]["withoutDiscovery"] == [BATCH]
            one.discovery.lists = {APPS: [resource(APPS)], BATCH: [resource(BATCH)]}
            await client.until(is_shown(client, {APPS: "a Current", BATCH: "a Current"}))
            assert (await client.status())["discovery"]["withoutDiscovery"] == []

    run(scenario)


def test_backend_that_is_down_is_current_for_the_grace_and_then_stale_with_its_resources() -> None:
    async def scenario() -> None:
        one, two = server(APPS), server(BATCH)
        settings = Discovery(interval=0.05, stale_grace=1.0)
        async with (
            serving(one),
            serving(two),
            service(backend("a", one.url), backend("b", two.url), discovery=settings) as client,
        ):
            await complete(client)
            before = (await items(client))["apps/v1"]
            etag = (await client.get("/apis", Accept=V2))[1]["ETag"]
            await one.stop()

            def is_unconfirmed() -> bool:
                assert client.app.discovery is not None
                return any(item.lapse for item in client.app.discovery.index.directory.versions())

            await client.until(is_unconfirmed)
            assert (await items(client))["apps/v1"] == before
            assert (await client.get("/apis", Accept=V2, If_None_Match=etag))[0] == 304
            report = (await client.status())["discovery"]
            assert report["groupVersions"][APPS]["error"]["cause"] == "refused"
            assert report["groupVersions"][APPS]["unconfirmedSeconds"] >= 0
            assert report["backends"]["a"]["state"] == "failed"
            await client.until(is_shown(client, {APPS: "a Stale", BATCH: "b Current"}))
            assert (await items(client))["apps/v1"] == {**before, "freshness": "Stale"}
            assert (await client.get("/apis", Accept=V2, If_None_Match=etag))[0] == 200
            metrics = (await client.get("/metrics"))[2].decode()
            assert "specmux_discovery_stale_group_versions 1.0" in metrics
            assert 'specmux_discovery_up{backend="a"} 0.0' in metrics
            assert f'specmux_discovery_unconfirmed_seconds{{group_version="{APPS}"}}' in metrics
            await one.start()
            await client.until(is_shown(client, {APPS: "a Current", BATCH: "b Current"}))
            assert (await client.get("/apis", Accept=V2, If_None_Match=etag))[0] == 304

    run(scenario)


def test_group_version_that_its_own_apiserver_calls_stale_keeps_its_resources() -> None:
    async def scenario() -> None:
        one = server(APPS, BATCH)
        async with serving(one), service(backend("a", one.url), discovery=SOON) as client:
            await complete(client)
            before = (await items(client))["batch/v1"]
            one.discovery.stale = {BATCH}
            asked = len(one.discovery.log)
            await client.until(lambda: len(one.discovery.log) > asked + 6)
            assert (await items(client))["batch/v1"] == before
            report = (await client.status())["discovery"]["groupVersions"]
            assert report[BATCH]["error"]["cause"] == "server_error"
            assert report[APPS]["error"] is None

    run(scenario)


def test_one_failing_list_costs_no_other() -> None:
    async def scenario() -> None:
        one = server(CORE, APPS, BATCH)
        one.discovery.form = "legacy"
        one.discovery.failing = {f"/{BATCH}": 503}
        async with serving(one), service(backend("a", one.url), discovery=SOON) as client:
            await complete(client)
            assert shown(client) == {CORE: "a Current", APPS: "a Current", BATCH: "a Stale"}
            status, headers, body = await client.get(f"/{BATCH}")
            assert (status, orjson.loads(body)["kind"], "Retry-After" in headers) == (503, "Status", True)
            one.discovery.failing = {"/api": 500}
            await client.until(is_shown(client, {CORE: "a Current", APPS: "a Current", BATCH: "a Current"}))
            await client.until(lambda: one.discovery.log.count("/api") > 6)
            assert shown(client)[CORE] == "a Current"
            report = (await client.status())["discovery"]
            assert report["groupVersions"][CORE]["error"]["cause"] == "server_error"

    run(scenario)


@pytest.mark.parametrize("kind", [Kind.V3, Kind.V2])
def test_backend_without_discovery_is_read_off_its_documents(kind: Kind) -> None:
    def with_kind(body: bytes) -> bytes:
        tree = orjson.loads(body)
        for item in tree["paths"].values():
            item["get"]["x-kubernetes-action"] = "list"
            item["get"]["x-kubernetes-group-version-kind"] = {
                "group": "apps",
                "version": "v1",
                "kind": "Thing",
            }
        return orjson.dumps(tree)

    async def scenario() -> None:
        one = (
            FakeAPIServer({APPS: with_kind(document(APPS))})
            if kind is Kind.V3
            else FakeAPIServer(None, with_kind(swagger(APPS)))
        )
        one.discovery.form = None
        one.discovery.version = {"gitVersion": "v0"}
        async with serving(one), service(backend("a", one.url, kind=kind), discovery=SOON) as client:
            await complete(client)
            await client.until(is_shown(client, {APPS: "a Current"}))
            (found,) = (await items(client))["apps/v1"]["resources"]
            assert (found["resource"], found["verbs"]) == ("things", ["list"])
            assert (await client.status())["discovery"]["backends"]["a"]["form"] == "synthesised"
            assert orjson.loads((await client.get("/version"))[2]) == {"gitVersion": "v0"}
            downloads = one.count(f"/openapi/v3/{APPS}")
            asked = len(one.discovery.log)
            await client.until(lambda: len(one.discovery.log) > asked + 6)
            assert one.count(f"/openapi/v3/{APPS}") == downloads
            one.discovery.form = "aggregated"
            one.discovery.lists = {APPS: [resource(APPS, "others", "Other")]}
            await client.until(
                lambda: (
                    client.app.discovery is not None
                    and client.app.discovery.followers()[0].knowledge.form == "aggregated"
                )
            )

    run(scenario)


def test_discovery_that_is_missing_for_a_moment_is_a_restart() -> None:
    async def scenario() -> None:
        one = server(APPS)
        async with serving(one), service(backend("a", one.url), discovery=SOON) as client:
            await complete(client)
            one.discovery.form = None

            def form() -> str | None:
                assert client.app.discovery is not None
                return client.app.discovery.followers()[0].knowledge.form

            await client.until(lambda: form() == "synthesised")
            one.discovery.form = "aggregated"
            await client.until(lambda: form() == "aggregated")

    run(scenario)


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [SHORT], categories: [all]}
  versions:
  - &version
    name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
  - {<<: *version, name: v1alpha1, storage: false}
"""


def test_manifests_are_discovered_with_their_names_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(CRD.replace("SHORT", "wd"))

    async def scenario() -> None:
        crds = Backend(name=BackendName("crds"), kind=Kind.CRDS, directory=tmp_path)
        async with service(crds) as client:
            await complete(client)
            keys = {"apis/example.com/v1": "crds Current", "apis/example.com/v1alpha1": "crds Current"}
            await client.until(is_shown(client, keys))
            found = await items(client)
            assert list(found) == ["example.com/v1", "example.com/v1alpha1"]
            (widget,) = found["example.com/v1"]["resources"]
            assert widget["shortNames"] == ["wd"]
            assert (widget["singularResource"], widget["categories"]) == ("widget", ["all"])
            assert [item["subresource"] for item in widget["subresources"]] == ["status"]
            group = orjson.loads((await client.get("/apis/example.com"))[2])
            assert group["preferredVersion"]["version"] == "v1"
            # Only the names change here: no document does.
            path.write_text(CRD.replace("SHORT", "gadget"))

            def is_renamed() -> bool:
                assert client.app.discovery is not None
                versions = client.app.discovery.index.directory.versions()
                return all(item.resources[0].short_names == ("gadget",) for item in versions)

            await client.until(is_renamed)
            path.unlink()
            await client.until(is_shown(client, {}))

    run(scenario)


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
            assert (await items(client))["dead/v1"]["resources"] == []

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
        async with serving(one), service(backend("a", one.url), discovery=Discovery(enabled=False)) as client:
            await client.ready()
            assert (await client.get("/apis"))[0] == 404
            assert (await client.status())["discovery"] is None
            assert one.discovery.log == []

    run(scenario)


def test_answers_are_those_of_the_accelerator_and_the_memo_when_discovery_changes() -> None:
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

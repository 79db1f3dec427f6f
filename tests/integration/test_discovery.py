"""Discovery of real backends over loopback, merged and served by a whole service."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.discovery import V2, resource
from integration.discovered import APPS, BATCH, CORE, complete, is_shown, items, run, server, shown
from running.service import backend, service
from specmux_aggregator.config.settings import DiscoverySettings
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_converters.group_versions import GroupVersion

SOON = DiscoverySettings(interval=0.1, stale_grace=60.0)


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
            # Discovery is complete sooner than the documents on a busy machine.
            await client.until(
                lambda: len(client.app.publisher.current.entries) == 4, "all documents are there"
            )
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
        settings = DiscoverySettings(interval=0.05, stale_grace=1.0)
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


@pytest.mark.parametrize("kind", [BackendKind.V3, BackendKind.V2])
def test_backend_without_discovery_is_read_off_its_documents(kind: BackendKind) -> None:
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
            if kind is BackendKind.V3
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
        crds = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=tmp_path)
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

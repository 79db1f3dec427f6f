"""A cluster that misbehaves, or changes in the worst moment: nothing is lost, and no neighbour pays."""

from __future__ import annotations

import asyncio
import base64
import gzip
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from running.cluster_service import (
    APPS,
    METRICS,
    WIDGETS,
    accept_definition,
    builtin,
    definition,
    extension,
    hash_now,
    listed,
    owner,
    serves,
    with_discovery,
)
from running.service import Client, backend, service
from specmux_aggregator.api_discovery.accept import AGGREGATED
from specmux_aggregator.config.settings import DiscoverySettings
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_cache.access.server_access import Credentials
from specmux_converters.recognise import recognise

pytestmark = pytest.mark.long

V2 = AGGREGATED[0].content_type

MANIFEST = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: {plural}, kind: {kind}}}
  versions:
"""
VERSION = "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: %s}}\n"
ALIASES = "".join(f"  b{level}: &b{level} [{', '.join([f'*b{level - 1}'] * 10)}]\n" for level in range(1, 9))
MANY = "".join(
    f"  - {{name: v{number}, served: true, storage: false, schema: {{openAPIV3Schema: {{type: object}}}}}}\n"
    for number in range(1, 1001)
)

UNUSUAL = {
    "equals": VERSION % '{type: object, properties: {op: {type: string, enum: [=, "!="], default: =}}}',
    "yes and no": VERSION % "{type: object, properties: {y: {type: integer}, n: {type: string}}}",
    "anchors": VERSION
    % "{type: object, properties: {a: &a {type: string}, b: *a, c: {<<: *a, minLength: 1}}}",
    "template in a text": VERSION % '{type: object, description: "{{ .Values.text }}"}',
    "many versions": MANY,
    "no schema": "  - {name: v1, served: true, storage: true}\n",
}
"""Versions of a manifest that publish something."""
BROKEN = {
    "bomb of aliases": VERSION % "{type: object}" + "x:\n  b0: &b0 [a]\n" + ALIASES,
    "template": VERSION % '{{ include "schema" . }}',
}
NOTED = {"key twice": VERSION % "{type: object, type: string, type: object}"}
"""Published as the last of equal keys says, which is noted."""


def run(scenario: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with FakeCluster({APPS: document(APPS)}) as cluster:
            with_discovery(cluster)
            cluster.put(API_SERVICES, builtin("apps", "v1"))
            await scenario(cluster)

    asyncio.run(main())


def test_discovery_loses_nothing_while_the_cluster_changes() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics, serves(cluster) as client:
            cluster.put(API_SERVICES, extension(metrics))
            await client.until(lambda: {APPS, METRICS} <= listed(client), "listed")
            cluster.discovery.delay = 0.3
            lost: list[set[str]] = []

            async def look() -> None:
                while True:
                    lost.append({APPS, METRICS} - listed(client))
                    await asyncio.sleep(0.002)

            looking = asyncio.create_task(look())
            for number in range(5):
                accept_definition(cluster, definition(f"Kind{number}", group=f"g{number}.example.com"))
                await asyncio.sleep(0.1)
            raised = extension(metrics)
            raised["spec"]["groupPriorityMinimum"] = 3000
            cluster.put(API_SERVICES, raised)
            await client.until(lambda: "apis/g4.example.com/v1" in listed(client), "all listed")
            await client.until(lambda: len(lost) > 50, "looked often")
            looking.cancel()
            assert not any(lost), [missing for missing in lost if missing][:3]

    run(scenario)


def test_credentials_that_change_take_nothing_out_of_discovery() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with (
            serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics,
            serves(cluster, backend("m", metrics.url)) as client,
        ):
            await client.until(lambda: METRICS in listed(client), "listed")
            metrics.discovery.delay = 0.3
            settings = client.app.settings
            changed = backend("m", metrics.url, credentials=Credentials(token="t"))
            await client.app.reconfigure(replace(settings, backends=(changed,)))
            asked = len(metrics.discovery.log)
            while len(metrics.discovery.log) == asked:
                assert METRICS in listed(client)
                await asyncio.sleep(0.005)
            await metrics.stop()
            moved = backend("m", "http://127.0.0.1:1")
            await client.app.reconfigure(replace(settings, backends=(moved,)))
            # Another server is another matter.
            await client.until(lambda: METRICS not in listed(client), "forgotten")

    run(scenario)


def test_apiserver_that_is_away_loses_nothing_though_history_is_compacted() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            for kind in ("Stays", "Goes"):
                cluster.put(CRDS, definition(kind, group=f"{kind.lower()}.example.com"))
            cluster.put(API_SERVICES, extension(metrics))
            async with serves(cluster) as client:
                before = await client.paths()
                await client.until(lambda: set(before) <= listed(client), "listed")
                for url in before.values():
                    assert (await client.get(url))[0] == 200
                await cluster.stop()
                ends = time.monotonic() + 2.0
                while time.monotonic() < ends:
                    assert await client.paths() == before
                    assert set(before) <= listed(client)
                    for url in before.values():
                        assert (await client.get(url))[0] == 200
                    assert (await client.get("/readyz"))[0] == 200
                    await asyncio.sleep(0.05)
                states = set()
                while states != {"failing"}:
                    watches = (await client.status())["sources"]["kubernetes"]["watches"]
                    states = {watch["state"] for watch in watches.values()}
                cluster.delete(CRDS, "goess.goes.example.com")
                cluster.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
                cluster.put(CRDS, definition("Comes", group="comes.example.com"))
                cluster.compact()
                await cluster.start()
                wanted = {APPS, "apis/stays.example.com/v1", "apis/comes.example.com/v1"}
                await client.until(lambda: set(client.app.publisher.current.entries) == wanted, "caught up")
                await client.until(lambda: listed(client) == wanted, "listed")

    run(scenario)


def test_watches_that_end_all_the_time_lose_no_change() -> None:
    """Each of two hundred changes is a step from one state of the cluster to the next."""

    async def scenario(cluster: FakeCluster) -> None:
        dice = random.Random(7)
        cluster.watch_life = 0.05
        async with serves(cluster) as client:
            kinds = [f"Kind{number}" for number in range(12)]
            alive: dict[str, int] = {}
            for step in range(200):
                kind = dice.choice(kinds)
                if kind in alive and dice.random() < 0.4:
                    del alive[kind]
                    cluster.delete(CRDS, f"{kind.lower()}s.{kind.lower()}.example.com")
                else:
                    alive[kind] = step
                    made = definition(kind, group=f"{kind.lower()}.example.com", description=f"step {step}")
                    cluster.put(CRDS, made)
                if dice.random() < 0.05:
                    cluster.compact()
                await asyncio.sleep(dice.random() * 0.02)
            wanted = {APPS, *(f"apis/{kind.lower()}.example.com/v1" for kind in alive)}
            await client.until(lambda: set(client.app.publisher.current.entries) == wanted, "all there")
            for kind, step in alive.items():
                key = f"apis/{kind.lower()}.example.com/v1"
                async with asyncio.timeout(DEADLINE):
                    while f"step {step}".encode() not in (await client.get((await client.paths())[key]))[2]:
                        await asyncio.sleep(0.02)

    run(scenario)


def test_api_service_that_is_made_anew_with_another_service_never_shows_the_old_one_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with (
            serving(FakeAPIServer({METRICS: document(METRICS, "old")})) as old,
            serving(FakeAPIServer({METRICS: document(METRICS, "new")})) as new,
        ):
            cluster.put(API_SERVICES, extension(old))
            async with serves(cluster) as client:
                url = (await client.paths())[METRICS]
                assert b'"old"' in (await client.get(url))[2]
                for server, note in ((new, b'"new"'), (old, b'"old"'), (new, b'"new"')):
                    before = hash_now(client, METRICS)
                    cluster.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
                    cluster.put(API_SERVICES, extension(server))
                    await client.until(
                        lambda before=before: hash_now(client, METRICS) not in (None, before), "new"
                    )  # type: ignore[misc]
                    status, _, body = await client.get((await client.paths())[METRICS])
                    assert (status, note in body) == (200, True)
                    status, _, _ = await client.get(url)
                    assert status == (200 if server is old else 301)

    run(scenario)


@pytest.mark.parametrize("path", [CRDS, API_SERVICES])
@pytest.mark.parametrize("kind", ["login page", "bomb", "array", "wrong kind", "empty", "404 as html"])
def test_garbage_in_place_of_a_list_keeps_what_was_known(path: str, kind: str) -> None:
    bomb = gzip.compress(b'{"kind":"List","items":[' + b" " * (80 << 20) + b"]}", 1)

    async def garbage(_: web.Request) -> web.Response:
        match kind:
            case "login page":
                return web.Response(text="<html><form>Log in</form></html>", content_type="text/html")
            case "bomb":
                fields = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
                return web.Response(body=bomb, headers=fields)
            case "array":
                return web.json_response([])
            case "wrong kind":
                return web.json_response({"kind": "Status", "metadata": {}, "items": {"a": 1}})
            case "404 as html":
                return web.Response(status=404, text="<html>not here</html>", content_type="text/html")
            case _:
                return web.Response(body=b"")

    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(CRDS, definition("Widget"))
            async with serves(cluster) as client:
                wanted = {APPS, METRICS, WIDGETS}
                assert set(await client.paths()) == wanted
                await client.until(lambda: wanted <= listed(client), "listed")
                name = path.rpartition("/")[2]
                assert client.app.cluster is not None
                cluster.answers[path] = garbage
                cluster.compact()
                cluster.cut_watches()
                watches = client.app.cluster
                await client.until(lambda: watches.watches[name].failure is not None, "failed")
                if kind == "404 as html":
                    # That is an answer: there are no such objects.
                    await client.until(lambda: set(client.app.publisher.current.entries) != wanted, "gone")
                else:
                    await asyncio.sleep(0.3)
                    assert set(await client.paths()) == wanted
                    assert wanted <= listed(client)
                del cluster.answers[path]
                await client.until(lambda: watches.watches[name].failure is None, "is back")
                await client.until(lambda: set(client.app.publisher.current.entries) == wanted, "all there")

    run(scenario)


@pytest.mark.parametrize("path", ["/apis", "/openapi/v3", "/version"])
def test_login_page_in_place_of_what_an_apiserver_says_keeps_what_was_known(path: str) -> None:
    async def login(_: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><html>Log in</html>", content_type="text/html")

    async def scenario(cluster: FakeCluster) -> None:
        cluster.discovery.version = {"gitVersion": "v1.35.0"}
        cluster.put(CRDS, definition("Widget"))
        async with serves(
            cluster, settings={"discovery": DiscoverySettings(interval=0.1, stale_grace=30.0)}
        ) as client:
            await client.until(lambda: {APPS, WIDGETS} <= listed(client), "listed")
            cluster.answers[path] = login
            asked = len(cluster.seen(path))
            await client.until(lambda: len(cluster.seen(path)) > asked + 3, "asked again")
            assert set(await client.paths()) == {APPS, WIDGETS}
            _, _, body = await client.get("/apis", Accept=V2)
            assert {item["metadata"]["name"] for item in orjson.loads(body)["items"]} == {
                "apps",
                "example.com",
            }
            assert orjson.loads((await client.get("/version"))[2]) == {"gitVersion": "v1.35.0"}

    run(scenario)


@pytest.mark.long
@pytest.mark.parametrize("name", [*UNUSUAL, *BROKEN, *NOTED])
async def test_manifest_of_any_kind_costs_no_neighbour(name: str, tmp_path: Path) -> None:
    good = (
        MANIFEST.format(plural="goods", kind="Good") + VERSION % "{type: object, description: A neighbour.}"
    )
    (tmp_path / "good.yaml").write_text(good)
    (tmp_path / "bad.yaml").write_text(
        MANIFEST.format(plural="bads", kind="Bad") + {**UNUSUAL, **BROKEN, **NOTED}[name]
    )

    crds = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=tmp_path)
    async with service(crds) as client:
        await client.until(lambda: WIDGETS in client.app.publisher.current.entries, "published")
        components = await kinds(client)
        assert components["Good"] == "A neighbour."
        assert ("Bad" in components) == (name not in BROKEN)
        notes = (await client.status())["backends"]["crds"]["notes"]
        assert any(note.startswith("bad.yaml: ") for note in notes) == (name not in UNUSUAL), notes
        if name == "many versions":
            await client.until(lambda: len(client.app.publisher.current.entries) == 1000, "all")
            await client.until(lambda: len(listed(client)) == 1000, "listed")


@pytest.mark.long
@pytest.mark.parametrize("name", UNUSUAL)
def test_definition_of_any_kind_costs_no_neighbour(name: str) -> None:
    (made,) = recognise((MANIFEST.format(plural="bads", kind="Bad") + UNUSUAL[name]).encode()).documents

    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Good", description="A neighbour."))
        async with serves(cluster) as client:
            assert await kinds(client) == {"Good": "A neighbour."}
            before = hash_now(client, WIDGETS)
            cluster.put(CRDS, {**definition("Bad"), **made})
            await client.until(lambda: hash_now(client, WIDGETS) != before, "published")
            components = await kinds(client)
            assert components["Good"] == "A neighbour."
            assert "Bad" in components

    run(scenario)


async def kinds(client: Client) -> dict[str, Any]:
    """The descriptions of the kinds of one group-version."""
    document = orjson.loads((await client.get((await client.paths())[WIDGETS]))[2])
    prefix = "com.example.v1."
    return {
        name.removeprefix(prefix): schema.get("description")
        for name, schema in document["components"]["schemas"].items()
        if name.startswith(prefix) and not name.endswith("List")
    }


def test_bundle_that_holds_no_certificate_costs_no_neighbour() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            for group, bundle in (
                ("none.example.com", b"hello"),
                ("cut.example.com", b"-----BEGIN CERTIFICATE-----"),
            ):
                item = extension(metrics, group, "v1")
                item["spec"]["caBundle"] = base64.b64encode(bundle).decode()
                cluster.put(API_SERVICES, item)
            cluster.put(CRDS, definition("Widget"))
            async with serves(cluster, service_url="https://127.0.0.1:{port}") as client:
                assert set(await client.paths()) == {APPS, WIDGETS}
                backends = (await client.status())["backends"]
                for name in ("v1.none.example.com", "v1.cut.example.com"):
                    assert backends[name]["error"]["cause"] == "bad_tls", backends[name]

    run(scenario)


def test_definition_that_stops_serving_a_version_is_out_of_documents_and_lists() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        both, one = definition("Widget", "v1", "v2"), definition("Widget", "v1", "v2")
        one["spec"]["versions"][1]["served"] = False
        accept_definition(cluster, both)
        async with serves(cluster) as client:
            second = "apis/example.com/v2"
            await client.until(lambda: {WIDGETS, second} <= listed(client), "listed")
            url = (await client.paths())[second]
            assert (await client.get(url))[0] == 200
            cluster.put(CRDS, one)
            cluster.delete(API_SERVICES, "v2.example.com")
            await client.until(lambda: second not in listed(client), "is gone")
            assert second not in await client.paths()
            assert (await client.get(url))[0] == 404
            assert (await client.get("/" + second))[0] == 404
            assert WIDGETS in listed(client)
            _, _, body = await client.get("/apis", Accept=V2)
            groups = {item["metadata"]["name"]: item["versions"] for item in orjson.loads(body)["items"]}
            assert [version["version"] for version in groups["example.com"]] == ["v1"]

    run(scenario)


def test_names_of_definitions_stay_listed_while_others_change() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        for kind in ("Widget", "Gadget"):
            named = definition(kind, group=f"{kind.lower()}.example.com")
            named["spec"]["names"]["shortNames"] = [kind[:2].lower()]
            cluster.put(CRDS, named)
        async with serves(cluster) as client:

            async def short_names() -> dict[str, list[str]]:
                _, _, body = await client.get("/apis", Accept=V2)
                return {
                    resource["resource"]: resource.get("shortNames", [])
                    for group in orjson.loads(body)["items"]
                    for version in group["versions"]
                    for resource in version["resources"]
                    if group["metadata"]["name"] != "apps"
                }

            async def until(wanted: dict[str, list[str]]) -> None:
                async with asyncio.timeout(DEADLINE):
                    while await short_names() != wanted:
                        await asyncio.sleep(0.01)

            await until({"widgets": ["wi"], "gadgets": ["ga"]})
            changed = definition("Gadget", group="gadget.example.com")
            changed["spec"]["names"]["shortNames"] = ["gg"]
            cluster.put(CRDS, changed)
            await until({"widgets": ["wi"], "gadgets": ["gg"]})
            cluster.put(CRDS, definition("Thing", group="thing.example.com"))
            await until({"widgets": ["wi"], "gadgets": ["gg"], "things": []})

    run(scenario)


def test_apiserver_that_still_lists_what_definitions_no_longer_serve_does_not_stand_in() -> None:
    """A version that is turned off stays in an apiserver's own documents until it restarts."""
    second = "apis/example.com/v2"

    async def scenario(cluster: FakeCluster) -> None:
        assert cluster.documents is not None
        cluster.documents |= {WIDGETS: document(WIDGETS), second: document(second)}
        both, one = definition("Widget", "v1", "v2"), definition("Widget", "v1", "v2")
        one["spec"]["versions"][1]["served"] = False
        cluster.put(CRDS, both)
        async with serves(cluster) as client:
            await client.until(lambda: {APPS, WIDGETS, second} <= listed(client), "listed")
            cluster.put(CRDS, one)
            await client.until(lambda: owner(client, second) is None, "turned off")
            await client.until(lambda: second not in listed(client), "not listed")
            cluster.put(CRDS, both)
            await client.until(lambda: owner(client, second) == "kubernetes-crds", "turned on")
            cluster.delete(CRDS, "widgets.example.com")
            await client.until(lambda: owner(client, WIDGETS) is None, "deleted")
            await client.until(lambda: WIDGETS not in listed(client), "not listed")
            assert owner(client, second) is None
            # What nothing is known of any more is the apiserver's again.
            cluster.forbidden.add(CRDS)
            cluster.cut_watches()
            await client.until(lambda: owner(client, WIDGETS) == "kubernetes", "forbidden")
        cluster.forbidden.clear()
        cluster.put(CRDS, one)
        async with serves(cluster) as client:
            assert owner(client, second) is None, "not after a restart either"

    run(scenario)


def test_cluster_of_which_nothing_is_known_has_not_no_apis() -> None:
    """An empty list with 200 would tell controllers that everything is gone."""

    async def scenario(cluster: FakeCluster) -> None:
        await cluster.stop()
        async with serves(cluster) as client:
            for path in ("/api", "/apis", "/apis/apps/v1", "/version"):
                status, fields, _ = await client.get(path, Accept=V2)
                assert (status, fields["Retry-After"]) == (503, "1"), path
            await cluster.start()
            await client.until(lambda: APPS in listed(client), "is back")
            assert (await client.get("/apis", Accept=V2))[0] == 200
            assert (await client.get("/apis/apps/v1"))[0] == 200
            await cluster.stop()
            await asyncio.sleep(0.5)
            assert (await client.get("/apis", Accept=V2))[0] == 200

    run(scenario)

"""An unmodified kubectl in front of us: what it prints, and which requests it makes for it.

The requests are compared with those measured of kubectl 1.32 against an apiserver.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from data.built_in_swagger import swagger_of
from fakes.apiserver import FakeAPIServer, serving
from fakes.discovery import resource
from fakes.prefix_proxy import Passed, PrefixProxy, proxying
from running.kubectl import KUBECTLS, Kubectl
from running.service import Client, backend, directory, service
from shared_data import DATA, PUBLISHED, SHARED, documents, load, needs, read
from specmux_aggregator.config.settings import DocumentSettings
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_converters.codecs import protobuf_v2
from specmux_converters.media_types import PROTOBUF_V2
from specmux_tools.demo import BOOKS, PLANTS, SEEDS, openapi_v3, swagger_2
from specmux_tools.demo import serving as serving_application

pytestmark = pytest.mark.skipif(not KUBECTLS, reason="no kubectl on this machine")

OLD = [path for path in KUBECTLS if path.name in ("kubectl.1.27", "kubectl.1.28")]
"""Those that read /openapi/v2 first."""

CREATE = ("create", "--validate=strict", "--dry-run=client", "-f", "-")

HASH = re.compile(r"\?hash=[0-9A-F]+")


@asynccontextmanager
async def kubectl_before(
    home: Path, *backends: Backend, prefix: str = "", program: Path | None = None, **settings: Any
) -> AsyncIterator[tuple[Kubectl, PrefixProxy, Client]]:
    async with service(*backends, **settings) as client, proxying(client.base, prefix) as proxy:
        watch = client.app.discovery
        assert watch is not None
        await client.ready()
        await client.until(
            lambda: watch.index.is_complete and bool(watch.index.directory.versions()), "asked"
        )
        home.mkdir(exist_ok=True)
        yield Kubectl(f"--server={proxy.url}", home=home, program=program or KUBECTLS[-1]), proxy, client


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def asked(passed: list[Passed]) -> list[str]:
    """The requests without what differs from run to run."""
    return [f"{item.method} {HASH.sub('?hash=H', item.target)}" for item in passed]


def write_documents(folder: Path) -> None:
    for item in (PLANTS, BOOKS):
        path = folder / f"{item.group_version}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(openapi_v3(item)))


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, description: An early widget.}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget is a part of a machine.
        properties:
          spec:
            type: object
            description: What it should be.
            properties:
              size: {type: integer, description: How large it is., minimum: 1}
              colour: {type: string, enum: [red, green]}
"""

WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 3}\n"


@pytest.mark.parametrize("prefix", ["", "/clusters/one"])
def test_own_documents_of_a_directory(tmp_path: Path, prefix: str) -> None:
    write_documents(tmp_path / "documents")

    async def scenario() -> None:
        files = directory("files", tmp_path / "documents")
        async with kubectl_before(tmp_path / "home", files, prefix=prefix) as (kubectl, proxy, _):
            explained = await kubectl.good("explain", "plants")
            assert re.search(r"GROUP: +garden.example.org\nKIND: +Plant\nVERSION: +v1\n", explained)
            assert "Plant is something that grows in a bed." in explained
            assert asked(proxy.take()) == [
                "GET /api?timeout=32s",
                "GET /apis?timeout=32s",
                "GET /openapi/v3?timeout=32s",
                "GET /openapi/v3/apis/garden.example.org/v1?hash=H&timeout=32s",
            ]
            assert "species\t<string>" in await kubectl.good("explain", "plants", "--recursive")
            warm = proxy.take()
            assert asked(warm)[0] == "GET /openapi/v3?timeout=32s"
            assert (warm[0].status, warm[0].is_conditional) == (304, True)
            assert "Botanical name." in await kubectl.good("explain", "plants.spec.species")
            warm = proxy.take()
            # One conditional request: discovery and the document come from kubectl's caches.
            assert [(item.target, item.status) for item in warm] == [("/openapi/v3?timeout=32s", 304)]
            code, _, errors = await kubectl("explain", "plants.spec.colour")
            assert (code, 'field "colour" does not exist' in errors) == (1, True)
            code, _, errors = await kubectl("explain", "rocks")
            assert (code, "doesn't have a resource type" in errors) == (1, True)

    run(scenario)


def test_resources_and_versions_are_listed_and_revalidated(tmp_path: Path) -> None:
    write_documents(tmp_path / "documents")

    async def scenario() -> None:
        async with kubectl_before(tmp_path / "home", directory("files", tmp_path / "documents")) as (
            kubectl,
            proxy,
            _,
        ):
            lines = (await kubectl.good("api-resources", "--no-headers")).splitlines()
            assert [line.split() for line in lines] == [
                ["plants", "garden.example.org/v1", "true", "Plant"],
                ["books", "library.example.org/v1", "true", "Book"],
            ]
            assert asked(proxy.take()) == ["GET /api?timeout=32s", "GET /apis?timeout=32s"]
            assert await kubectl.good("api-versions") == "garden.example.org/v1\nlibrary.example.org/v1\n"
            await kubectl.good("api-resources")
            again = proxy.take()
            assert {item.target.partition("?")[0] for item in again} == {"/api", "/apis"}
            assert {(item.status, item.is_conditional, item.size) for item in again} == {(304, True, 0)}

    run(scenario)


def test_manifests_alone(tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "widgets.yaml").write_text(CRD)

    async def scenario() -> None:
        crds = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=tmp_path / "crds")
        async with kubectl_before(tmp_path / "home", crds) as (kubectl, proxy, client):
            explained = await kubectl.good("explain", "wd")
            # v1 goes before the version that the manifest names first.
            assert re.search(r"KIND: +Widget\nVERSION: +v1\n", explained)
            assert "A widget is a part of a machine." in explained
            assert "size\t<integer>" in await kubectl.good("explain", "widget", "--recursive")
            assert re.search(
                r"(?i)enum:\s+red,?\s+green", await kubectl.good("explain", "widgets.spec.colour")
            )
            early = await kubectl.good("explain", "widgets", "--api-version=example.com/v1alpha1")
            assert "An early widget." in early
            listed = await kubectl.good("api-resources", "--no-headers", "-o", "wide")
            assert re.match(
                r"widgets +wd +example.com/v1 +true +Widget +"
                r"delete,deletecollection,get,list,patch,create,update,watch +all\n",
                listed,
            )
            proxy.take()
            created = await kubectl.good(*CREATE, given=WIDGET)
            assert created == "widget.example.com/one created (dry run)\n"
            passed = proxy.take()
            assert [item.target.partition("?")[0] for item in passed][:1] == ["/openapi/v3"]
            assert {item.method for item in passed} == {"GET"}
            assert not any("openapi/v2" in item.target for item in passed)
            code, _, errors = await kubectl(
                "create",
                "--validate=strict",
                "--dry-run=client",
                "-f",
                "-",
                given=WIDGET.replace("Widget", "X"),
            )
            # No document has the kind, so kubectl wants the one at /openapi/v2, which manifests do not make.
            assert (code, "failed to download openapi" in errors) == (1, True)
            # The manifest changes: a kubectl that knows the old document gets the new one.
            manifest = tmp_path / "crds" / "widgets.yaml"
            manifest.write_text(CRD.replace("part of a machine", "thing"))
            key = client.app.publisher.current.generation
            await client.until(lambda: client.app.publisher.current.generation > key)
            assert "A widget is a thing." in await kubectl.good("explain", "widgets")

    run(scenario)


@pytest.mark.parametrize("prefix", ["", "/k8s/clusters/c-1"])
@pytest.mark.parametrize("form", ["aggregated", "v2beta1", "legacy"])
def test_apiserver_with_discovery_of_its_own(tmp_path: Path, prefix: str, form: str) -> None:
    keys = {item.group_version: item for item in (PLANTS, SEEDS)}

    async def scenario() -> None:
        api = FakeAPIServer({key: orjson.dumps(openapi_v3(item)) for key, item in keys.items()})
        api.discovery.form = form
        api.discovery.version = {"major": "1", "minor": "33", "gitVersion": "v1.33.7-garden"}
        api.discovery.lists = {
            key: [resource(key, item.plural, item.kind, shortNames=[item.plural[:2]])]
            for key, item in keys.items()
        }
        old = FakeAPIServer(None, orjson.dumps(swagger_2(BOOKS)))
        old.discovery.form = None
        async with (
            serving(api),
            serving(old),
            kubectl_before(
                tmp_path / "home", backend("api", api.url), backend("old", old.url), prefix=prefix
            ) as (kubectl, proxy, client),
        ):
            watch = client.app.discovery
            assert watch is not None
            # Its document is converted first, which a busy machine takes its time for.
            await client.until(
                lambda: any(
                    each.group_version == BOOKS.group_version and each.is_known
                    for each in watch.index.directory.versions()
                ),
                "books",
            )
            assert "Plant is something" in await kubectl.good("explain", "pl")
            assert asked(proxy.take()) == [
                "GET /api?timeout=32s",
                "GET /apis?timeout=32s",
                "GET /openapi/v3?timeout=32s",
                "GET /openapi/v3/apis/garden.example.org/v1?hash=H&timeout=32s",
            ]
            # A kind of a server that has only Swagger 2.0 and no discovery.
            assert "As printed on the spine." in await kubectl.good("explain", "books.spec.title")
            lines = (await kubectl.good("api-resources", "--no-headers")).splitlines()
            assert {line.split()[0] for line in lines} == {"plants", "seeds", "books"}
            assert "Server Version: v1.33.7-garden" in await kubectl.good("version")
            asked_of_us = api.count("/openapi/v3/")
            await kubectl.good("explain", "plants", "--recursive")
            assert api.count("/openapi/v3/") == asked_of_us

    run(scenario)


def test_stale_document_costs_one_redirect_that_holds_behind_a_prefix(tmp_path: Path) -> None:
    async def scenario() -> None:
        api = FakeAPIServer({PLANTS.group_version: orjson.dumps(openapi_v3(PLANTS))})
        api.discovery.lists = {PLANTS.group_version: [resource(PLANTS.group_version, "plants", "Plant")]}
        async with (
            serving(api),
            kubectl_before(tmp_path / "home", backend("a", api.url), prefix="/p") as (kubectl, _, _client),
        ):
            raw = await kubectl.good("get", "--raw", f"/p/openapi/v3/{PLANTS.group_version}?hash=OLD")
            assert orjson.loads(raw) == openapi_v3(PLANTS)

    run(scenario)


def old_swagger() -> bytes:
    """As an apiserver of 1.21 gave it. Else of a built-in release with the sentence that is looked for, and
    with another name of the parameter that says that the server validates."""
    captured = DATA / "openapi-v2-protobuf" / "v1_21_2" / "swagger.pb.gz"
    if captured.exists():
        return read(captured)
    swagger = orjson.loads(orjson.dumps(swagger_of("1.35")).replace(b"fieldValidation", b"fieldless"))
    name = "io.k8s.api.apps.v1.Deployment"
    schema = {**swagger["definitions"][name], "description": "Deployment enables declarative updates."}
    return protobuf_v2.encode({**swagger, "definitions": {**swagger["definitions"], name: schema}})


@asynccontextmanager
async def old_apiserver(swagger: bytes) -> AsyncIterator[str]:
    """An apiserver of the time before v3, as it was captured: Protobuf at /openapi/v2 and nothing else."""

    headers = {"Content-Type": PROTOBUF_V2, "ETag": f'"{hashlib.sha256(swagger).hexdigest()}"'}

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=swagger, headers=headers)

    application = web.Application()
    application.router.add_get("/openapi/v2", answer)
    async with serving_application(application) as url:
        yield url


@pytest.mark.long
@pytest.mark.parametrize("program", [*OLD[-1:], *KUBECTLS[-1:]], ids=lambda path: path.name)
@pytest.mark.parametrize("openapi_v2", ["passthrough", "merged"])
def test_bad_field_is_refused_when_only_the_client_can_validate(
    tmp_path: Path, openapi_v2: str, program: Path
) -> None:
    """Servers before 1.25 do not validate fields, so kubectl does, by the document at /openapi/v2."""
    settings = DocumentSettings(openapi_v2=openapi_v2)
    swagger = old_swagger()
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: one}\n"
        "spec: {replicas: 1, selector: {}, template: {}}\n"
    )

    async def scenario() -> None:
        async with (
            old_apiserver(swagger) as url,
            kubectl_before(tmp_path / "home", backend("old", url), program=program, documents=settings) as (
                kubectl,
                proxy,
                _,
            ),
        ):
            assert "Deployment enables declarative updates" in await kubectl.good("explain", "deployments")
            assert "(dry run)" in await kubectl.good(*CREATE, given=deployment)
            assert any(item.target.startswith("/openapi/v2") for item in proxy.take())
            code, _, errors = await kubectl(*CREATE, given=deployment.replace("replicas", "replicants"))
            assert (code, 'unknown field "replicants"' in errors) == (1, True)

    run(scenario)


@needs(PUBLISHED)
@pytest.mark.parametrize(
    "program",
    [*OLD[:1], *(pytest.param(path, marks=pytest.mark.long) for path in OLD[1:])],
    ids=lambda path: path.name,
)
def test_the_merged_document_is_explained_as_kubernetes_own(tmp_path: Path, program: Path) -> None:
    """kubectl up to 1.28 loads /openapi/v2 before it explains anything."""
    release = DATA / "k8s-pairs" / "1.35"
    for name in ("api/v1.json", "apis/apps/v1.json"):
        path = tmp_path / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read(documents("1.35")[name.removesuffix(".json")]))
    swagger = protobuf_v2.encode(load(release / "v2" / "swagger.json.gz"))

    async def explained(*backends: Backend, openapi_v2: str) -> list[str]:
        settings = DocumentSettings(openapi_v2=openapi_v2)
        home = tmp_path / openapi_v2
        async with kubectl_before(home, *backends, program=program, documents=settings) as (kubectl, *_):
            await kubectl.good("explain", "deployments.spec")
            return [
                await kubectl.good("explain", "--output=plaintext-openapiv2", *words)
                for words in (["pods"], ["deployments.spec.strategy"], ["deployments", "--recursive"])
            ]

    async def scenario() -> None:
        files = directory("files", tmp_path / "documents")
        async with old_apiserver(swagger) as url:
            own = await explained(backend("own", url), openapi_v2="passthrough")
        assert await explained(files, openapi_v2="merged") == own
        assert "rollingUpdate" in own[1]

    run(scenario)


@pytest.mark.parametrize("prefix", ["", pytest.param("/clusters/one", marks=pytest.mark.long)])
def test_documents_of_a_whole_release(tmp_path: Path, prefix: str) -> None:
    async def scenario() -> None:
        files = directory("release", DATA / "k8s-pairs" / "1.35" / "v3")
        async with kubectl_before(tmp_path / "home", files, prefix=prefix) as (kubectl, proxy, client):
            watch = client.app.discovery
            assert watch is not None
            await client.until(lambda: len(watch.index.directory.versions()) == 36)
            assert re.search(
                r"KIND: +Deployment\nVERSION: +v1\n", await kubectl.good("explain", "deployments")
            )
            assert asked(proxy.take()) == [
                "GET /api?timeout=32s",
                "GET /apis?timeout=32s",
                "GET /openapi/v3?timeout=32s",
                "GET /openapi/v3/apis/apps/v1?hash=H&timeout=32s",
            ]
            recursive = await kubectl.good("explain", "deployments", "--recursive")
            assert len(recursive.splitlines()) > 500
            assert [(item.target, item.status) for item in proxy.take()] == [("/openapi/v3?timeout=32s", 304)]
            replicas = await kubectl.good("explain", "deployments.spec.replicas")
            pods = await kubectl.good("explain", "pods")
            if (SHARED / PUBLISHED).exists():
                assert "Number of desired pods." in replicas
                assert "Pod is a collection of containers" in pods
            assert "FIELD: replicas <integer>" in replicas
            assert "spec\t<PodSpec>" in pods
            lines = (await kubectl.good("api-resources", "--no-headers")).splitlines()
            assert len(lines) == 74
            assert len((await kubectl.good("api-versions")).splitlines()) == 36
            proxy.take()
            good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
            created = await kubectl.good(
                "create", "--validate=strict", "--dry-run=client", "-f", "-", given=good
            )
            assert created == "configmap/a created (dry run)\n"
            assert not any("openapi/v2" in item.target for item in proxy.take())

    run(scenario)


@pytest.mark.parametrize("program", KUBECTLS, ids=lambda path: path.name)
def test_every_kubectl_at_hand(tmp_path: Path, program: Path) -> None:
    write_documents(tmp_path / "documents")

    async def scenario() -> None:
        files = directory("files", tmp_path / "documents")
        async with kubectl_before(tmp_path / "home", files, prefix="/p", program=program) as (
            kubectl,
            proxy,
            _,
        ):
            assert len((await kubectl.good("api-resources", "--no-headers")).splitlines()) == 2
            if program in OLD:
                # A directory has no /openapi/v2 where none is merged.
                assert "NotFound" in (await kubectl("explain", "plants"))[2]
                return
            assert "Plant is something" in await kubectl.good("explain", "plants")
            proxy.take()
            await kubectl.good("explain", "books.spec")
            assert "/openapi/v3/apis/library.example.org/v1?hash=H&timeout=32s" in asked(proxy.take())[-1]

    run(scenario)

"""The demonstration: apiservers on loopback with documents written for it, and the requests that show what
the service in front of them does. The command ``demo`` runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.crd import build
from specmux_converters.document import Document, canonical, content_hash
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import CBOR, PROTOBUF
from specmux_converters.to_swagger2.conversion import convert_to_v2

STALE: Final = "0123456789ABCDEF"
SHOWN: Final = 4
"""Group-versions of a backend that are named."""


@dataclass(frozen=True, slots=True)
class DemoResource:
    """A namespaced resource with a spec of plain string properties."""

    group: str
    version: str
    kind: str
    plural: str
    description: str
    properties: Mapping[str, str]
    """Descriptions by name."""

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(f"apis/{self.group}/{self.version}")


PLANTS: Final = DemoResource(
    "garden.example.org", "v1", "Plant", "plants",
    "Plant is something that grows in a bed.",
    {"species": "Botanical name.", "bed": "The bed it stands in.", "water": "How often to water it."},
)  # fmt: skip
SEEDS: Final = DemoResource(
    "garden.example.org", "v1alpha1", "Seed", "seeds",
    "Seed is a plant to be.",
    {"species": "Botanical name.", "sowAfter": "Day of the year after which it may be sown."},
)  # fmt: skip
BOOKS: Final = DemoResource(
    "library.example.org", "v1", "Book", "books",
    "Book can be borrowed.",
    {"title": "As printed on the spine.", "shelf": "Where it stands."},
)  # fmt: skip
TREES: Final = DemoResource(
    "orchard.example.org", "v1", "Tree", "trees",
    "Tree bears fruit, and is defined by a CustomResourceDefinition.",
    {"variety": "Fruit that is picked from it.", "row": "The row it stands in."},
)  # fmt: skip
STATIONS: Final = DemoResource(
    "weather.example.org", "v1", "Station", "stations",
    "Station measures the weather.",
    {"location": "Where it stands.", "elevation": "Metres above the sea, as text."},
)  # fmt: skip


def definition(resource: DemoResource) -> Document:
    """The manifest of a CustomResourceDefinition, as somebody would apply it to an apiserver."""
    names = {
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "kind": resource.kind,
        "shortNames": [resource.plural[:2]],
    }
    fields = {name: {"description": said, "type": "string"} for name, said in resource.properties.items()}
    schema = {
        "description": resource.description,
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": fields}},
    }
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def openapi_v3(resource: DemoResource) -> Document:
    """The document of one resource, as an apiserver with OpenAPI v3 publishes it."""
    return build([definition(resource)]).documents[resource.group_version]


def swagger_2(resource: DemoResource) -> Document:
    """The Swagger 2.0 document of one resource, as an apiserver without OpenAPI v3 publishes it."""
    return convert_to_v2(openapi_v3(resource)).document


def v3_application(documents: Mapping[str, Document]) -> web.Application:
    """An apiserver that publishes OpenAPI v3: a root of hash URLs, and documents that redirect a stale
    hash."""
    bodies = {key: canonical(document) for key, document in documents.items()}
    hashes = {key: content_hash(body) for key, body in bodies.items()}

    async def root(request: web.Request) -> web.Response:
        paths = {key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={hashes[key]}"} for key in bodies}
        return web.json_response(body=orjson.dumps({"paths": paths}))

    async def document(request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if key not in bodies:
            raise web.HTTPNotFound
        if request.query.get("hash", hashes[key]) != hashes[key]:
            raise web.HTTPMovedPermanently(f"/openapi/v3/{key}?hash={hashes[key]}")
        return web.json_response(body=bodies[key], headers={"ETag": f'"{hashes[key]}"'})

    application = web.Application()
    application.router.add_get("/openapi/v3", root)
    application.router.add_get("/openapi/v3/{key:.+}", document)
    return application


def v2_application(document: Document) -> web.Application:
    """An apiserver of the time before OpenAPI v3: one Swagger 2.0 document, and 404 for all else."""
    body = canonical(document)

    async def swagger(request: web.Request) -> web.Response:
        return web.json_response(body=body, headers={"ETag": f'"{content_hash(body)}"'})

    application = web.Application()
    application.router.add_get("/openapi/v2", swagger)
    return application


@asynccontextmanager
async def serving(application: web.Application) -> AsyncIterator[str]:
    """Serve the application on a free port of loopback for as long as the context lasts; gives its URL."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def tour(url: str, snapshot: Snapshot, *, native: GroupVersion, converted: GroupVersion, edited: Path) -> str:
    """The commands to paste into another terminal."""
    hash_url = f"{url}/openapi/v3/{native}?hash={snapshot.entries[native].offer.hash}"
    backends = "\n".join(
        f"  {name:<10} speaks {observation.dialect}: {', '.join(sorted(observation.offers)[:SHOWN])}"
        f"{' …' * (len(observation.offers) > SHOWN)}"
        for name, observation in sorted(snapshot.observations.items())
    )
    return f"""\
specmux is serving at {url}

{backends}

Every kind and field, in a browser: {url}/openapi/ui/

Try, in another terminal:

  # the discovery root: every group-version with its hash URL
  curl -s {url}/openapi/v3

  # a document under its hash, cacheable for ever
  document='{hash_url}'
  curl -si "$document" | head -12

  # a document whose backend has Swagger 2.0 only
  curl -s {url}/openapi/v3/{converted}

  # as Protobuf, and as CBOR
  curl -s -H 'Accept: {PROTOBUF}' "$document" | wc -c
  curl -s -H 'Accept: {CBOR}' "$document" | xxd | head -3

  # a stale hash redirects to the current one
  curl -si '{url}/openapi/v3/{native}?hash={STALE}&timeout=32s' | grep -iE '^HTTP|^location'

  # nothing new: 304
  etag=$(curl -sI {url}/openapi/v3 | tr -d '\\r' | sed -n 's/^ETag: //p')
  curl -si -H "If-None-Match: $etag" {url}/openapi/v3 | head -1

  # an unmodified kubectl: a kind of the backend that has Swagger 2.0 only, a custom resource, all kinds
  kubectl --server={url} explain books.spec
  kubectl --server={url} explain trees.spec
  kubectl --server={url} api-resources

  # the state of the backends, and metrics
  curl -s {url}/status
  curl -s {url}/metrics | grep specmux_aggregation_duration_seconds_count

  # edit a document: its hash in the root changes within a second
  sed -i 's/measures/reports/' {edited}

Ctrl-C ends it.
"""

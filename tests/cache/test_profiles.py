"""Documents without paths, of servers that have them, of servers that know no profile, and of those that
refuse it: one request each, and each form stored under its own type."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from data.explained_documents import bed
from fakes.openapi_server import Reference, Reply, Request, document
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main
from specmux_cache import CacheOptions, SchemaCache
from specmux_converters.crd import build
from specmux_converters.profiles import schemas_only

KEY = "apis/garden.example.org/v1"
PATH = f"/openapi/v3/{KEY}"
WHOLE = orjson.dumps(bed(name={"type": "string"}))
SMALL = orjson.dumps(schemas_only(orjson.loads(WHOLE)))
PROFILE = "application/json;profile=schemas"
MANIFEST = "apiVersion: garden.example.org/v1\nkind: Bed\nmetadata: {name: a}\nspec: {name: b}\n"


class Profiled(Reference):
    """A server that has the profile, as specmux has it."""

    def _document(self, request: Request, path: str, body: bytes) -> Reply:
        reply = super()._document(request, path, body)
        if PROFILE not in request.headers.get("accept", "").split(",")[0] or reply.status != 200:
            return reply
        kept = [field for field in reply.headers if field[0] not in ("Content-Type", "Etag")]
        fields = [("Content-Type", PROFILE), ("Etag", '"small"'), *kept]
        small = orjson.dumps(schemas_only(orjson.loads(body)))
        return replace(reply, body=small, headers=fields)


class Refusing(Reference):
    """A server that takes the parameter for another type, and has no such type."""

    def _document(self, request: Request, path: str, body: bytes) -> Reply:
        if "profile" in request.headers["accept"]:
            return Reply(406)
        return super()._document(request, path, body)


opened = {"in place": partial(SchemaCache, background=False), "in the background": SchemaCache}


@pytest.mark.parametrize("kind", opened)
def test_the_smaller_form_is_stored_beside_the_document(tmp_path: Path, kind: str) -> None:
    with serving_in_thread(Profiled({KEY: WHOLE})) as server:
        with opened[kind](server.url, CacheOptions(directory=tmp_path)) as cache:
            assert cache.prefetch([KEY], media="schemas").fetched == (KEY,)
            assert cache.prefetch([KEY], media="schemas").present == (KEY,)
            small = cache.schema(KEY, media="schemas")
            assert (small.body, small.media_type, small.from_cache) == (SMALL, PROFILE, True)
            whole = cache.schema(KEY, media="json")
            assert (whole.body, whole.media_type, whole.from_cache) == (WHOLE, "application/json", False)
            assert cache.spec(KEY)["paths"]
        (first, second) = server.server.seen(PATH)
        assert first.headers["accept"] == f"{PROFILE}, application/json;q=0.9"
        assert second.headers["accept"] == "application/json"
    with SchemaCache(server.url, CacheOptions(directory=tmp_path, offline=True)) as cache:
        assert cache.schema(KEY, media="schemas").body == SMALL


@pytest.mark.parametrize(("server_kind", "asked"), [(Reference, 1), (Refusing, 2)])
def test_a_server_without_the_profile_gives_the_document(
    tmp_path: Path, server_kind: Any, asked: int
) -> None:
    with serving_in_thread(server_kind({KEY: WHOLE})) as server:
        with SchemaCache(server.url, CacheOptions(directory=tmp_path), background=False) as cache:
            found = cache.schema(KEY, media="schemas")
            assert (found.body, found.media_type) == (WHOLE, "application/json")
            assert cache.schema(KEY, media="json").from_cache
            assert cache.schema(KEY, media="schemas").from_cache
        assert len(server.server.seen(PATH)) == asked


@pytest.mark.parametrize("server_kind", [Profiled, Reference])
@pytest.mark.parametrize(
    ("command", "small"),
    [
        (["explain", "beds.spec.name"], True),
        (["search", "name"], True),
        (["validate"], False),
        (["get", KEY], False),
    ],
)
def test_commands_ask_for_what_serves_them(
    tmp_path: Path, server_kind: Any, command: list[str], small: bool
) -> None:
    manifest = tmp_path / "bed.yaml"
    manifest.write_text(MANIFEST)
    words = [*command, *([str(manifest)] if command == ["validate"] else [])]
    discovery = {
        "/api": {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []},
        "/apis": {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [GROUP]},
    }
    documents = server_kind({KEY: WHOLE, "apis/other/v1": document("other")})

    def answer(request: Request) -> Reply:
        found = discovery.get(request.path)
        return (
            Reply(200, orjson.dumps(found), [("Content-Type", "application/json")])
            if found
            else documents(request)
        )

    with serving_in_thread(answer) as server:
        options = ["--server", server.url, "--cache-directory", str(tmp_path / "cache")]
        done = CliRunner().invoke(main, [*words, *options])
        assert done.exit_code == 0, done.output
        accepted = {each.headers["accept"] for each in server.server.seen(PATH)}
    assert accepted == {f"{PROFILE}, application/json;q=0.9" if small else "application/json"}


def test_validate_knows_what_paths_say(tmp_path: Path) -> None:
    """A status is dropped as the object is created, where it is a subresource."""
    text = {"type": "object", "properties": {"name": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": text, "status": text}}},
        "subresources": {"status": {}},
    }
    names = {"kind": "Bed", "plural": "beds"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "beds.garden.example.org"},
        "spec": {
            "group": "garden.example.org",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    manifest = tmp_path / "bed.yaml"
    manifest.write_text(MANIFEST + "status: {name: 1}\n")
    (whole,) = build([definition]).documents.values()
    with serving_in_thread(Profiled({KEY: orjson.dumps(whole)})) as server:
        options = ["--server", server.url, "--cache-directory", str(tmp_path / "cache")]
        done = CliRunner().invoke(main, ["validate", str(manifest), *options])
        assert done.exit_code == 0, done.output


GROUP = {
    "metadata": {"name": "garden.example.org"},
    "versions": [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [
                {
                    "resource": "beds",
                    "responseKind": {"group": "garden.example.org", "version": "v1", "kind": "Bed"},
                    "scope": "Namespaced",
                    "singularResource": "bed",
                    "verbs": ["get"],
                }
            ],
        }
    ],
}

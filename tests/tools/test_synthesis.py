"""Resources read off OpenAPI v3 documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from data.own_definitions import own_clusters
from shared_data import GOLDEN, documents, files, load
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.workers.documents import resources_in
from specmux_converters.crd import build
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_schema.kinds import Kind, kinds_in
from specmux_converters.operations import kinds_named_by
from specmux_converters.resources import APIResource, GroupVersionKind, ResourceNames
from specmux_converters.synthesis import name_resources, names_of, resources_of, synthesise
from specmux_tools.kinds import group_version_kinds

PUBLISHED_CRDS = GOLDEN / "crd-openapi-v3"
KEY = GroupVersion("apis/g/v1")
KIND = {"group": "g", "version": "v1", "kind": "Thing"}


def operation(action: str | None = None, **fields: Any) -> dict[str, Any]:
    made = {"x-kubernetes-group-version-kind": KIND, **fields}
    return made if action is None else {**made, "x-kubernetes-action": action}


def found(paths: dict[str, Any], **fields: Any) -> dict[str, APIResource]:
    resources = synthesise({"openapi": "3.0.0", "paths": paths, **fields}, KEY)
    return {resource.name: resource for resource in resources}


def test_resource_of_a_namespace() -> None:
    collection = "/apis/g/v1/namespaces/{namespace}/things"
    things = found(
        {
            "/apis/g/v1/": {"get": {}},
            "/apis/g/v1/things": {"get": operation("list")},
            collection: {
                "get": operation("list", parameters=[{"name": "watch"}]),
                "post": operation("post"),
                "delete": operation("deletecollection"),
                "parameters": [{"name": "namespace"}],
            },
            f"{collection}/{{name}}": {
                "get": operation("get"),
                "put": operation("put"),
                "patch": operation("patch"),
                "delete": operation("delete"),
            },
            f"{collection}/{{name}}/status": {"get": operation("get"), "patch": operation("patch")},
            f"{collection}/{{name}}/proxy/{{path}}": {"post": operation("connect")},
            "/apis/other/v1/others": {"get": operation("list")},
        }
    )
    assert list(things) == ["things"]
    thing = things["things"]
    assert thing.verbs == (
        "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"
    )  # fmt: skip
    assert (thing.kind, thing.singular) == (GroupVersionKind("g", "v1", "Thing"), "thing")
    assert thing.is_namespaced
    assert [(item.name, item.verbs) for item in thing.subresources] == [
        ("proxy", ("create",)), ("status", ("get", "patch"))
    ]  # fmt: skip


def test_subresource_is_of_the_kind_that_it_answers_with() -> None:
    """Paths of a custom resource as an apiserver writes them: operations name its own kind throughout."""
    scale = {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}
    own = {"$ref": "#/components/schemas/g.v1.Thing"}
    shared = {"$ref": "#/components/schemas/Shared"}

    def answering(schema: dict[str, Any]) -> dict[str, Any]:
        content = {"application/json": {"schema": schema}, "application/yaml": {"schema": schema}}
        return operation("get", responses={"200": {"content": content}, "401": {"description": "-"}})

    things = found(
        {
            "/apis/g/v1/things/{name}": {"get": operation("get")},
            "/apis/g/v1/things/{name}/scale": {"get": answering(scale), "patch": operation("patch")},
            "/apis/g/v1/things/{name}/status": {"get": answering(own)},
            "/apis/g/v1/things/{name}/shared": {"get": answering(shared)},
            "/apis/g/v1/things/{name}/missing": {"get": answering({"$ref": "#/components/schemas/none"})},
        },
        components={
            "schemas": {
                "io.k8s.api.autoscaling.v1.Scale": {
                    "x-kubernetes-group-version-kind": [
                        {"group": "autoscaling", "version": "v1", "kind": "Scale"}
                    ]
                },
                "g.v1.Thing": {"x-kubernetes-group-version-kind": [KIND]},
                "Shared": {"x-kubernetes-group-version-kind": [KIND, {**KIND, "version": "v2"}]},
            }
        },
    )
    own_kind = GroupVersionKind("g", "v1", "Thing")
    assert {item.name: item.kind for item in things["things"].subresources} == {
        "scale": GroupVersionKind("autoscaling", "v1", "Scale"),
        "status": own_kind,
        "shared": own_kind,
        "missing": own_kind,
    }


def test_verbs_follow_the_methods_when_actions_are_missing() -> None:
    things = found(
        {
            "/apis/g/v1/things": {"get": operation(), "delete": operation(), "put": operation()},
            "/apis/g/v1/things/{name}": {"get": operation(), "put": operation(), "options": operation()},
        }
    )
    assert things["things"].verbs == ("deletecollection", "get", "list", "update")
    assert not things["things"].is_namespaced


def test_namespaces_themselves_lie_in_no_namespace() -> None:
    things = found(
        {
            "/apis/g/v1/namespaces": {"get": operation("list")},
            "/apis/g/v1/namespaces/{name}": {"get": operation("get")},
            "/apis/g/v1/namespaces/{name}/status": {"get": operation("get")},
        }
    )
    assert [(item.name, item.is_namespaced) for item in things.values()] == [("namespaces", False)]
    assert [item.name for item in things["namespaces"].subresources] == ["status"]


def test_watch_is_told_by_its_paths_where_there_are_any() -> None:
    watchable = operation("list", parameters=[{"name": "watch"}])
    paths = {"/apis/g/v1/things": {"get": watchable}, "/apis/g/v1/others": {"get": watchable}}
    assert [item.verbs for item in found(paths).values()] == [("list", "watch")] * 2
    paths["/apis/g/v1/watch/things"] = {"get": operation("watchlist")}
    assert [item.verbs for item in found(paths).values()] == [("list",), ("list", "watch")]


def test_watch_is_found_when_its_parameter_is_a_component() -> None:
    reference = {"$ref": "#/components/parameters/watch-XNNPZGbK"}
    things = found(
        {"/apis/g/v1/things": {"parameters": [reference], "get": operation("list")}},
        components={"parameters": {"watch-XNNPZGbK": {"name": "watch"}}},
    )
    assert things["things"].verbs == ("list", "watch")


@pytest.mark.parametrize(
    "paths",
    [
        None,
        [],
        {"/apis/g/v1/things": None},
        {"/apis/g/v1/things": {"get": None}},
        {"/apis/g/v1/things": {"get": {}}},
        {"/apis/g/v1/things": {"get": {"x-kubernetes-group-version-kind": "Thing"}}},
        {"/apis/g/v1/things": {"get": {"x-kubernetes-group-version-kind": {"kind": "Thing"}}}},
        {"/apis/g/v1/{name}": {"get": operation("get")}},
        {"/apis/g/v1/things/{name}/status": {"get": operation("get")}},
        {"/apis/g/v1/watch": {"get": {"parameters": [3, {"$ref": 3}, {"$ref": "#/x"}, {"name": 3}]}}},
    ],
)
def test_nothing_when_no_path_leads_to_a_kind(paths: Any) -> None:
    assert found(paths) == {}


def test_document_is_refused_when_it_is_none() -> None:
    limits = Limits(max_bytes=10)
    for body, coding, cause in (
        (b"<html>", Coding.IDENTITY, Cause.BAD_BODY),
        (b"{}", Coding.GZIP, Cause.BAD_BODY),
        (b'{"a":"12345"}', Coding.IDENTITY, Cause.BAD_BODY),
    ):
        refused = resources_in(body, coding, KEY, limits=limits)
        assert isinstance(refused, Failure)
        assert refused.cause is cause
    assert resources_in(orjson.dumps({}), Coding.IDENTITY, KEY, limits=limits) == ()


def test_names_of_a_manifest() -> None:
    names = {"plural": "things", "singular": "one", "shortNames": ["th", 3], "categories": ["all"]}
    plural, made = names_of({"spec": {"names": names}}) or ("", None)
    assert (plural, made) == ("things", ResourceNames("one", ("th",), ("all",)))
    things = tuple(found({"/apis/g/v1/things": {"get": operation("list")}}).values())
    assert made is not None
    (thing,) = name_resources(things, {"things": made})
    assert (thing.singular, thing.short_names, thing.categories) == ("one", ("th",), ("all",))
    (plain,) = name_resources(things, {"things": ResourceNames("", (), ())})
    assert plain.singular == "thing"
    assert name_resources(things, {}) == things


@pytest.mark.parametrize(
    "manifest", [{}, {"spec": []}, {"spec": {"names": 3}}, {"spec": {"names": {"plural": 3}}}]
)
def test_names_of_nothing(manifest: Any) -> None:
    assert names_of(manifest) is None


def test_core_resources_of_a_release_are_those_of_its_apiserver() -> None:
    resources = synthesise(load(documents("1.35")["api/v1"]), GroupVersion("api/v1"))
    by_name = {resource.name: resource for resource in resources}
    assert len(by_name) == 17
    assert by_name["componentstatuses"].verbs == ("get", "list")
    assert by_name["bindings"].verbs == ("create",)
    assert not by_name["nodes"].is_namespaced
    pods = {item.name: item for item in by_name["pods"].subresources}
    assert set(pods) == {
        "attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy",
        "resize", "status",
    }  # fmt: skip
    assert pods["eviction"].kind == GroupVersionKind("policy", "v1", "Eviction")


@pytest.mark.parametrize(
    "of", files(PUBLISHED_CRDS) if PUBLISHED_CRDS.is_dir() else range(0, len(own_clusters()), 6)
)
def test_every_kind_of_a_crd_document_is_found(of: Path | int, tally: Any) -> None:
    """``of``: a document that others publish, or in a clone a cluster of our own definitions."""
    if isinstance(of, int):
        found = build(own_clusters()[of]["definitions"]).documents
    else:
        name = str(of.relative_to(PUBLISHED_CRDS)).partition("/")[2].partition(".json")[0]
        found = {GroupVersion(name): load(of)}
    assert found
    for key, document in found.items():
        check_kinds(document, key)
        tally("CRD documents whose resources were synthesised", 1)


def check_kinds(document: Any, key: GroupVersion) -> None:
    parts = split(key)
    assert parts is not None
    schemas = document["components"]["schemas"].values()
    kinds = {
        kind["kind"]
        for schema in schemas
        for kind in schema.get("x-kubernetes-group-version-kind", ())
        if (kind["group"], kind["version"]) == parts and "items" not in schema.get("properties", {})
    }
    resources = synthesise(document, key)
    assert {resource.kind.kind for resource in resources} == {
        kind for kind in kinds if kind != "DeleteOptions"
    }
    assert all("watch" in resource.verbs for resource in resources)


def test_the_order_of_a_documents_keys_decides_nothing() -> None:
    other = operation("get")
    other["x-kubernetes-group-version-kind"] = {"group": "g", "version": "v1", "kind": "Other"}
    item = {"get": other, "put": operation("put")}
    paths = {"/apis/g/v1/things": {"get": operation("list")}, "/apis/g/v1/things/{name}": item}
    backwards = {path: dict(reversed(paths[path].items())) for path in reversed(paths)}
    key = GroupVersion("apis/g/v1")
    assert resources_of({"paths": paths}, key) == resources_of({"paths": backwards}, key)


def test_every_reader_of_kinds_skips_the_same_entries() -> None:
    named = [
        KIND,
        {"group": "g", "version": "v1"},
        {"group": "g", "version": 1, "kind": "Thing"},
        None,
        "Thing",
    ]
    holder = {"x-kubernetes-group-version-kind": named}
    assert [*kinds_named_by(holder)] == [("g", "v1", "Thing")]
    assert group_version_kinds(holder) == (GroupVersionKind("g", "v1", "Thing"),)
    assert kinds_in({"components": {"schemas": {"T": holder}}}, KEY) == (Kind("g", "v1", "Thing", "T"),)

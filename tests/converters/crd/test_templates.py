"""What documents of custom resources take from a document of their cluster."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from converters.crd.widgets import KEY, of_spec, widget
from shared_data import NATIVE, PUBLISHED, SHARED, documents, load
from specmux_converters.crd import BUNDLED, CRDMemo, Templates, build, templates_for, templates_of
from specmux_converters.crd.templates import MAX_BYTES
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.releases import NEWEST, OLDEST, RELEASES, nearest_minor

V1 = GroupVersion(KEY)
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCALE = "io.k8s.api.autoscaling.v1.Scale"


def built(templates: Templates = BUNDLED, **changes: Any) -> Document:
    return build([widget(subresources={"scale": {}}, **changes)], templates=templates).documents[V1]


def native(version: str = "1.37", **schemas: Document | None) -> Document:
    """A document of a cluster, of a built-in resource: with the shapes of one of ours, and more."""
    document = copy.deepcopy(built())
    document["info"]["version"] = version
    named = document["components"]["schemas"]
    options = named[META + "DeleteOptions"]["x-kubernetes-group-version-kind"]
    options.append({"group": "apiregistration.k8s.io", "version": "v1", "kind": "DeleteOptions"})
    for name, schema in schemas.items():
        if schema is None:
            del named[META + name]
        else:
            named[META + name] = schema
    return document


def read(document: Document) -> Templates:
    templates = templates_of(document)
    assert templates is not None
    return templates


def test_templates_of_our_own_release_change_nothing() -> None:
    templates = read(native())
    assert built(templates) == built()
    assert templates == BUNDLED


def test_templates_survive_the_way_to_a_worker() -> None:
    again = pickle.loads(pickle.dumps(read(native("1.36"))))
    assert again == read(native("1.36"))
    assert built(again) == built(read(native("1.36")))


def test_components_are_the_clusters_with_what_they_refer_to() -> None:
    shards = {"type": "object", "description": "ShardInfo"}
    meta = {"type": "object", "properties": {"shardInfo": {"$ref": f"#/components/schemas/{META}ShardInfo"}}}
    templates = read(native("1.36", ListMeta=meta, ShardInfo=shards))
    schemas = built(templates)["components"]["schemas"]
    assert schemas[META + "ListMeta"] == meta
    assert schemas[META + "ShardInfo"] == shards
    kinds = schemas[META + "DeleteOptions"]["x-kubernetes-group-version-kind"]
    assert "apiregistration.k8s.io" not in {kind["group"] for kind in kinds}


def test_kinds_of_delete_options_are_known_where_a_document_lists_its_own_alone() -> None:
    """As those of Kubernetes 1.36 do."""
    document = native("1.36")
    options = document["components"]["schemas"][META + "DeleteOptions"]
    kinds = options["x-kubernetes-group-version-kind"]
    options["x-kubernetes-group-version-kind"] = [kind for kind in kinds if kind["group"] in ("", "apps")]
    made = built(read(document))["components"]["schemas"][META + "DeleteOptions"]
    listed = [(kind["group"], kind["version"]) for kind in made["x-kubernetes-group-version-kind"]]
    assert len(listed) == 53
    assert listed == sorted(listed)
    assert ("scheduling.k8s.io", "v1alpha2") in listed
    assert ("autoscaling", "v2beta1") not in listed


def test_kinds_of_delete_options_follow_the_release() -> None:
    """1.37 as its apiserver lists them, 55 in order; recorded by tests/cluster/test_documents.py."""

    def kinds(version: str) -> list[tuple[str, str]]:
        document = native(version)
        options = document["components"]["schemas"][f"{META}DeleteOptions"]
        options["x-kubernetes-group-version-kind"] = [{"group": "", "kind": "DeleteOptions", "version": "v1"}]
        found = read(document).schemas[f"{META}DeleteOptions"]["x-kubernetes-group-version-kind"]
        return [(kind["group"], kind["version"]) for kind in found]

    before, now = kinds("1.36"), kinds("1.37")
    assert set(before) - set(now) == {("scheduling.k8s.io", "v1alpha2")}
    assert set(now) - set(before) == {
        ("lifecycle.k8s.io", "v1alpha1"),
        ("scheduling.k8s.io", "v1alpha3"),
        ("storagemigration.k8s.io", "v1"),
    }
    assert (len(before), len(now)) == (53, 55)
    assert now == sorted(now)


def test_parameters_are_the_clusters() -> None:
    document = native()
    item = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets"]
    item["get"]["parameters"].append({"name": "shardSelector", "in": "query", "description": "new"})
    paths = built(read(document))["paths"]
    listing = paths["/apis/example.com/v1/widgets"]["parameters"]
    assert "shardSelector" in {each["name"] for each in listing}
    one = paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]
    assert [each["name"] for each in one["get"]["parameters"]] == ["resourceVersion"]


def test_apiversion_and_kind_are_described_as_the_cluster_does() -> None:
    document = native()
    document["components"]["schemas"][META + "Status"]["properties"]["kind"]["description"] = "other words"
    schemas = built(read(document))["components"]["schemas"]
    for name in ("com.example.v1.Widget", "com.example.v1.WidgetList"):
        assert schemas[name]["properties"]["kind"]["description"] == "other words"


@pytest.mark.parametrize(
    ("version", "has_examples", "has_empty_fields"),
    [("1.31", False, False), ("1.32", False, True), ("1.34", False, False), ("1.36", True, False),
     ("v1.37.1-rc.0", True, False), ("2.0", True, False), ("unversioned", True, False)],
)  # fmt: skip
def test_what_is_published_follows_the_release(
    version: str, has_examples: bool, has_empty_fields: bool
) -> None:
    said = {"type": "string", "example": {"a": [1.0]}, "externalDocs": {"url": "u", "description": None}}
    document = build([widget(of_spec(said))], templates=read(native(version))).documents[V1]
    schemas = document["components"]["schemas"]
    field = schemas["com.example.v1.Widget"]["properties"]["spec"]
    described = {"example": {"a": [1]}, "externalDocs": {"url": "u"}}
    assert field == ({"type": "string", **described} if has_examples else {"type": "string"})
    for name in ("com.example.v1.Widget", "com.example.v1.WidgetList"):
        assert ("x-kubernetes-selectable-fields" in schemas[name]) is has_empty_fields
        assert schemas[name].get("x-kubernetes-selectable-fields", []) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("paths"),
        lambda document: document.pop("components"),
        lambda document: document["components"]["schemas"].pop(SCALE),
        lambda document: document["components"]["schemas"].pop(META + "Time"),
        lambda document: document["components"]["schemas"][META + "Status"].pop("properties"),
        lambda document: document["components"]["schemas"][META + "Status"].update(x="x" * MAX_BYTES),
        lambda document: [item.pop("parameters", 0) for item in document["paths"].values()],
        lambda document: [item.pop("delete", 0) for item in document["paths"].values()],
    ],
)
def test_document_that_lacks_a_template_has_none(change: Callable[[Document], Any]) -> None:
    document = native()
    change(document)
    assert templates_of(document) is None


def test_nothing_is_a_document() -> None:
    for document in ({}, {"paths": []}, {"paths": {"/": None}, "components": {"schemas": {SCALE: 3}}}):
        assert templates_of(document) is None


def test_memo_builds_again_for_other_templates() -> None:
    memo = CRDMemo()
    first = build([widget()], memo=memo)
    other = build([widget()], memo=memo, templates=read(native("1.32")))
    assert first.fingerprints != other.fingerprints
    assert other.documents == build([widget()], templates=read(native("1.32"))).documents
    assert build([widget()], memo=memo).documents == first.documents


@pytest.mark.parametrize(
    ("version", "minor"),
    [("1.34", 34), ("v1.34.4-eks-1", 34), ("1.34+", 34), ("v1.9.11", OLDEST), ("v1.99.0", NEWEST),
     ("1", NEWEST), ("", NEWEST), (None, NEWEST), ("1.3456", NEWEST), ("unversioned", NEWEST),
     ("v2.0.0", NEWEST)],
)  # fmt: skip
def test_the_release_nearest_to_a_version(version: str | None, minor: int) -> None:
    assert nearest_minor(version) == minor


@pytest.mark.parametrize("release", NATIVE)
def test_every_release_has_templates(release: str) -> None:
    """But for their prose, where documents are those of the built-in releases."""
    path = documents(release).get("apis/apps/v1")
    if path is None:
        pytest.skip(f"{release} has no apis/apps/v1")
    document = load(path)
    document["info"]["version"] = f"v{release}.0"
    if release in RELEASES and (SHARED / PUBLISHED).exists():
        assert read(document) == templates_for(release)
    published = document["components"]["schemas"]
    schemas = built(read(document))["components"]["schemas"]
    shared_names = schemas.keys() - {"com.example.v1.Widget", "com.example.v1.WidgetList"}
    assert shared_names == {name for name in published if name.startswith((META, SCALE))} & shared_names
    for name in shared_names - {META + "DeleteOptions"}:
        assert schemas[name] == published[name]

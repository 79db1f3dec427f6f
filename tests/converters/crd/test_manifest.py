"""What is read from a manifest, and what a manifest may not say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from converters.crd.widgets import widget
from specmux_converters.crd.manifest import CRD, Problem, read_manifest
from specmux_converters.errors import InvalidDocument


def read(manifest: Any) -> tuple[CRD, list[Problem]]:
    problems: list[Problem] = []
    return read_manifest(manifest, problems), problems


def changed(path: str, value: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(widget())
    node: Any = manifest
    *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in parents:
        node = node[step]
    node[last] = value
    return manifest


def test_names_and_version_are_read() -> None:
    crd, problems = read(
        widget(subresources={"status": {}, "scale": None}, selectableFields=[{"jsonPath": ".spec.a"}])
    )
    (version,) = crd.versions
    assert problems == []
    assert (crd.name, crd.kind, crd.list_kind, crd.is_namespaced) == (
        "widgets.example.com", "Widget", "WidgetList", True,
    )  # fmt: skip
    assert crd.group_version(version) == "apis/example.com/v1"
    assert (version.has_status, version.has_scale, version.selectable_fields) == (True, False, ("spec.a",))
    assert version.schema_path == ("spec", "versions", 0, "schema", "openAPIV3Schema")


@pytest.mark.parametrize("served", [False, None, "absent"])
def test_version_that_is_not_served_is_left_out_without_a_word(served: Any) -> None:
    manifest = changed("spec/versions/0/served", served)
    if served == "absent":
        del manifest["spec"]["versions"][0]["served"]
    crd, problems = read(manifest)
    assert (crd.versions, problems) == ((), [])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Deployment"), ("apiVersion", "apiextensions.k8s.io/v2"), ("apiVersion", 1), ("spec", None),
        ("spec", []), ("spec/group", ""), ("spec/group", "Example.com"),
        ("spec/group", "{{ .Values.group }}"),
        ("spec/group", "a" * 254), ("spec/group", "../x"), ("spec/group", 1), ("spec/names", None),
        ("spec/names/kind", ""), ("spec/names/kind", "Wid/get"), ("spec/names/kind", ["Widget"]),
        ("spec/names/plural", "Widgets"), ("spec/names/plural", "w" * 64), ("spec/names/listKind", "Widget"),
        ("spec/names/listKind", 7), ("spec/scope", None), ("spec/scope", "namespaced"), ("spec/scope", {}),
        ("spec/versions", None), ("spec/versions", []), ("spec/versions", {}), ("spec/versions", "v1"),
    ],
)  # fmt: skip
def test_manifest_that_no_apiserver_takes_is_refused(path: str, value: Any) -> None:
    with pytest.raises(InvalidDocument) as refusal:
        read(changed(path, value))
    assert f"/{path}".startswith(refusal.value.pointer)


@pytest.mark.parametrize("manifest", [None, [], "CustomResourceDefinition", {}])
def test_what_is_no_manifest_is_refused(manifest: Any) -> None:
    with pytest.raises(InvalidDocument):
        read(manifest)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", None), ("", "v1"), ("/name", None), ("/name", "V1"), ("/name", "v1/x"), ("/served", "true"),
        ("/schema", []), ("/subresources", "status"), ("/subresources", {"status": True}),
        ("/selectableFields", {}), ("/selectableFields", [{}]), ("/selectableFields", [{"jsonPath": 1}]),
    ],
)  # fmt: skip
def test_bad_version_costs_that_version_alone(path: str, value: Any) -> None:
    manifest = changed(f"spec/versions/0{path}", value)
    manifest["spec"]["versions"].append({"name": "v2", "served": True})
    crd, problems = read(manifest)
    assert [version.name for version in crd.versions] == ["v2"]
    assert [(each.crd, each.construct) for each in problems] == [("widgets.example.com", "version")]
    assert problems[0].pointer.startswith(f"/spec/versions/0{path}")


def test_version_that_is_there_twice_counts_once() -> None:
    manifest = widget()
    manifest["spec"]["versions"] *= 2
    crd, problems = read(manifest)
    assert len(crd.versions) == 1
    assert problems[0].pointer == "/spec/versions/1/name"


def beta(**spec: Any) -> dict[str, Any]:
    manifest = widget()
    manifest["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    names = {key: manifest["spec"][key] for key in ("group", "names")}
    return {**manifest, "spec": {**names, **spec}}


def test_v1beta1_with_one_version_for_all() -> None:
    crd, _ = read(beta(version="v1", validation={"openAPIV3Schema": {"a": 1}}, subresources={"status": {}}))
    (version,) = crd.versions
    assert crd.is_namespaced
    assert (version.name, version.schema, version.has_status) == ("v1", {"a": 1}, True)
    assert version.schema_path == ("spec", "validation", "openAPIV3Schema")


def test_v1beta1_says_for_all_versions_what_v1_says_for_each() -> None:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": False}]
    top = {"validation": {"openAPIV3Schema": {}}, "selectableFields": [{"jsonPath": ".a"}]}
    crd, _ = read(beta(version="v1", versions=versions, scope="Cluster", **top))
    (version,) = crd.versions
    assert (version.schema, version.selectable_fields, crd.is_namespaced) == ({}, ("a",), False)
    own = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"b": 2}}}]
    assert read(beta(versions=own))[0].versions[0].schema == {"b": 2}


def test_v1beta1_says_for_all_versions_that_no_field_is_selectable() -> None:
    version = {"name": "v1", "served": True, "selectableFields": [{"jsonPath": ".a"}]}
    assert read(beta(versions=[version]))[0].versions[0].selectable_fields == ("a",)
    assert read(beta(versions=[version], selectableFields=[]))[0].versions[0].selectable_fields == ()


def test_v1_ignores_what_only_v1beta1_has() -> None:
    manifest = widget()
    del manifest["spec"]["versions"][0]["schema"]
    manifest["spec"] |= {
        "version": "v9",
        "validation": {"openAPIV3Schema": {}},
        "subresources": {"status": {}},
    }
    crd, _ = read(manifest)
    assert [(each.name, each.schema, each.has_status) for each in crd.versions] == [("v1", None, False)]

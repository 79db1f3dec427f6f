"""The requests of a custom resource, and what they are called."""

from __future__ import annotations

from typing import Any

import pytest

from converters.crd.widgets import widget
from specmux_converters.crd.manifest import CRD, Version, read_manifest
from specmux_converters.crd.version_documents import component_name, paths_of

ROOT = "/apis/example.com/v1/"
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def read(manifest: dict[str, Any]) -> tuple[CRD, Version]:
    crd = read_manifest(manifest, [])
    return crd, crd.versions[0]


def paths(*, cluster: bool = False, group: str = "example.com", **changes: Any) -> dict[str, Any]:
    manifest = widget(**changes)
    manifest["spec"] |= {"scope": "Cluster" if cluster else "Namespaced", "group": group}
    return paths_of(*read(manifest))


def methods(items: dict[str, Any]) -> dict[str, list[str]]:
    return {path: sorted(item.keys() - {"parameters"}) for path, item in items.items()}


def test_namespaced_resource() -> None:
    one = ROOT + "namespaces/{namespace}/widgets"
    assert methods(paths(subresources={"status": {}, "scale": SCALE})) == {
        ROOT + "widgets": ["get"],
        one: ["delete", "get", "post"],
        one + "/{name}": ["delete", "get", "patch", "put"],
        one + "/{name}/status": ["get", "patch", "put"],
        one + "/{name}/scale": ["get", "patch", "put"],
    }


def test_cluster_resource_has_no_namespace() -> None:
    items = paths(cluster=True)
    assert methods(items) == {
        ROOT + "widgets": ["delete", "get", "post"],
        ROOT + "widgets/{name}": ["delete", "get", "patch", "put"],
    }
    assert [each["name"] for each in items[ROOT + "widgets/{name}"]["parameters"]] == ["name", "pretty"]


@pytest.mark.parametrize(
    ("suffix", "method", "operation_id", "description"),
    [
        ("", "get", "listExampleComV1NamespacedWidget", "list objects of kind Widget"),
        ("", "post", "createExampleComV1NamespacedWidget", "create a Widget"),
        ("", "delete", "deleteExampleComV1CollectionNamespacedWidget", "delete collection of Widget"),
        ("/{name}", "get", "readExampleComV1NamespacedWidget", "read the specified Widget"),
        ("/{name}", "delete", "deleteExampleComV1NamespacedWidget", "delete a Widget"),
        ("/{name}", "patch", "patchExampleComV1NamespacedWidget", "partially update the specified Widget"),
        ("/{name}/status", "put", "replaceExampleComV1NamespacedWidgetStatus",
         "replace status of the specified Widget"),
        ("/{name}/scale", "patch", "patchExampleComV1NamespacedWidgetScale",
         "partially update scale of the specified Widget"),
    ],
)  # fmt: skip
def test_operation_is_called(suffix: str, method: str, operation_id: str, description: str) -> None:
    items = paths(subresources={"status": {}, "scale": SCALE})
    operation = items[f"{ROOT}namespaces/{{namespace}}/widgets{suffix}"][method]
    assert (operation["operationId"], operation["description"]) == (operation_id, description)
    assert operation["tags"] == ["exampleCom_v1"]


def test_list_of_all_namespaces_has_its_parameters_at_the_path() -> None:
    item = paths()[ROOT + "widgets"]
    assert item["get"]["operationId"] == "listExampleComV1WidgetForAllNamespaces"
    assert "parameters" not in item["get"]
    names = [each["name"] for each in item["parameters"]]
    assert names == sorted(names)
    assert {"pretty", "watch", "limit"} <= set(names)


@pytest.mark.parametrize(
    ("group", "operation_id", "tag"),
    [
        ("snapshot.storage.k8s.io", "createSnapshotStorageV1Widget", "snapshotStorage_v1"),
        ("3scale.net", "createScaleNetV1Widget", "ScaleNet_v1"),
        ("a-b.c2.io", "createABC2IoV1Widget", "aBC2Io_v1"),
        ("k8s.io", "createK8sIoV1Widget", "k8sIo_v1"),
    ],
)
def test_group_in_an_operation_id(group: str, operation_id: str, tag: str) -> None:
    operation = paths(cluster=True, group=group)[f"/apis/{group}/v1/widgets"]["post"]
    assert (operation["operationId"], operation["tags"]) == (operation_id, [tag])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("Apple", "create an Apple"),
        ("Class", "create a Class"),
        ("Things", "create Things"),
        ("ipPool", "create an ipPool"),
    ],
)
def test_article(kind: str, text: str) -> None:
    assert paths(kind=kind, cluster=True)[ROOT + "widgets"]["post"]["description"] == text


def test_bodies_and_answers() -> None:
    items = paths(cluster=True, subresources={"scale": SCALE})
    one = items[ROOT + "widgets/{name}"]
    assert items[ROOT + "widgets"]["post"]["responses"].keys() == {"200", "201", "202", "401"}
    assert one["put"]["responses"].keys() == {"200", "201", "401"}
    assert one["delete"]["responses"].keys() == {"200", "202", "401"}
    assert "required" not in one["delete"]["requestBody"]
    assert one["patch"]["requestBody"]["content"].keys() == {
        "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml",
    }  # fmt: skip
    scale = items[ROOT + "widgets/{name}/scale"]["put"]["requestBody"]["content"]["application/json"]
    assert scale["schema"]["$ref"].endswith("/io.k8s.api.autoscaling.v1.Scale")


def test_component_name_has_the_group_reversed() -> None:
    manifest = widget()
    manifest["spec"]["group"] = "a.example.com"
    assert component_name(*read(manifest), "WidgetList") == "com.example.a.v1.WidgetList"
    manifest["spec"]["group"] = "stable"
    assert component_name(*read(manifest), "Widget") == "stable.v1.Widget"

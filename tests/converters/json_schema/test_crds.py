"""CustomResourceDefinitions that are read off documents."""

from __future__ import annotations

from typing import Any

import yaml

from specmux_converters.document import CRD_TITLE
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.crds import crds_yaml
from specmux_converters.json_schema.document import DocumentSchemas

META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def schemas(version: str, *paths: str, title: str = CRD_TITLE) -> DocumentSchemas:
    kind = {"group": "x.test", "version": version, "kind": "Thing"}
    thing = {
        "type": "object",
        "properties": {"metadata": {"$ref": f"#/components/schemas/{META}"}, "spec": {"type": "object"}},
        "x-kubernetes-group-version-kind": [kind],
        "x-kubernetes-selectable-fields": [{"fieldPath": "spec.a"}],
    }
    root = f"/apis/x.test/{version}"
    served = {f"{root}/{path}": {"post": {"x-kubernetes-group-version-kind": kind}} for path in paths}
    document: dict[str, Any] = {
        "info": {"title": title},
        "paths": served,
        "components": {"schemas": {f"test.x.{version}.Thing": thing, META: {"type": "object"}}},
    }
    return DocumentSchemas(document, GroupVersion(f"apis/x.test/{version}"))


def test_versions_of_one_definition_come_together() -> None:
    held = {
        GroupVersion(f"apis/x.test/{version}"): schemas(version, *paths)
        for version, paths in (
            ("v1beta1", ("namespaces/{namespace}/things",)),
            ("v1", ("namespaces/{namespace}/things", "namespaces/{namespace}/things/{name}/status")),
        )
    }
    (found,) = yaml.safe_load_all(crds_yaml(held))
    assert found["metadata"]["name"] == "things.x.test"
    assert (found["spec"]["scope"], found["spec"]["names"]["listKind"]) == ("Namespaced", "ThingList")
    newest, oldest = found["spec"]["versions"]
    assert [(each["name"], each["storage"]) for each in (newest, oldest)] == [
        ("v1", True),
        ("v1beta1", False),
    ]
    assert (newest["subresources"], "subresources" in oldest) == ({"status": {}}, False)
    assert newest["selectableFields"] == [{"jsonPath": ".spec.a"}]
    assert newest["schema"]["openAPIV3Schema"]["properties"]["metadata"] == {"type": "object"}
    assert "x-kubernetes-group-version-kind" not in newest["schema"]["openAPIV3Schema"]


def test_versions_sort_as_apiservers_sort_them() -> None:
    """Names that are no versions of Kubernetes come last, by the alphabet."""
    names = ("next", "v1alpha1", "v2", "v10", "edge", "v1beta2")
    held = {GroupVersion(f"apis/x.test/{name}"): schemas(name, "things") for name in names}
    (found,) = yaml.safe_load_all(crds_yaml(held))
    versions = [each["name"] for each in found["spec"]["versions"]]
    assert versions == ["v10", "v2", "v1beta2", "v1alpha1", "edge", "next"]


def test_kinds_of_go_types_have_no_definition() -> None:
    key = GroupVersion("apis/x.test/v1")
    assert crds_yaml({key: schemas("v1", "things", title="Kubernetes")}) == b""
    (cluster_wide,) = yaml.safe_load_all(crds_yaml({key: schemas("v1", "things")}))
    assert cluster_wide["spec"]["scope"] == "Cluster"

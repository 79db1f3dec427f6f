from __future__ import annotations

from typing import Any

from specmux_converters.group_versions import GroupVersion
from specmux_converters.to_swagger2.kustomize import kustomize_schema

KIND = {"group": "example.com", "version": "v1", "kind": "Widget"}
LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def test_lists_that_are_maps_have_a_patch_strategy_and_paths_say_what_is_in_a_namespace() -> None:
    get = {"x-kubernetes-group-version-kind": KIND, "responses": {"200": {"description": "d"}}}
    document: dict[str, Any] = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/apis/example.com/v1/namespaces/{namespace}/widgets": {"get": get, "post": {"responses": {}}},
            "/apis/example.com/v1/": {"get": {"responses": {}}},
        },
        "components": {
            "schemas": {
                "com.example.v1.Widget": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"parts": LIST}},
                        "containers": {**LIST, "x-kubernetes-patch-merge-key": "id"},
                    },
                    "x-kubernetes-group-version-kind": [KIND],
                }
            }
        },
    }
    made = kustomize_schema({GroupVersion("apis/example.com/v1"): document})
    assert made["paths"].keys() == {"/apis/example.com/v1/namespaces/{namespace}/widgets"}
    widget = made["definitions"]["com.example.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [KIND]
    parts = widget["properties"]["spec"]["properties"]["parts"]
    assert (parts["x-kubernetes-patch-strategy"], parts["x-kubernetes-patch-merge-key"]) == ("merge", "name")
    assert widget["properties"]["containers"]["x-kubernetes-patch-merge-key"] == "id"

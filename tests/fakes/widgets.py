"""A definition whose objects may only grow, and its objects."""

from __future__ import annotations

from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer", "maximum": 9}, "unit": {"type": "string"}},
            "x-kubernetes-validations": [
                {"rule": "!has(self.size) || self.size >= oldSelf.size", "message": "may only grow"},
                {"rule": "!has(self.unit) || !oldSelf.hasValue() || self.unit == oldSelf.value().unit",
                 "optionalOldSelf": True, "message": "unit is immutable"},
            ],
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}},
    },
}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
             "schema": {"openAPIV3Schema": SCHEMA}}
        ],
    },
}  # fmt: skip


def widget(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": "a", "namespace": "shop", **metadata}, "spec": spec}

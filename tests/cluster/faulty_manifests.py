"""Manifests with faults, each by a name (faulty_manifests.yaml): of built-in kinds, and of one custom kind
whose definition has nearly every rule there is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

GROUP: Final = "faults.example.com"


def _text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _list(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_SPEC: Final = _object(
    {
        "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
        "colour": _text(enum=["red", "green"]),
        "code": _text(pattern="^[a-z]{3}-[0-9]+$", maxLength=8),
        "title": _text(minLength=3, maxLength=5),
        "when": _text(format="date-time"),
        "day": _text(format="date"),
        "long": _text(format="duration"),
        "mail": _text(format="email"),
        "address": _text(format="ipv4"),
        "id": _text(format="uuid"),
        "bytes": _text(format="byte"),
        "port": {"x-kubernetes-int-or-string": True},
        "tags": _list(_text(), **{"x-kubernetes-list-type": "set"}, maxItems=4),
        "parts": _list(
            _object({"name": _text(), "port": {"type": "integer"}}, required=["name"]),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        "labels": {"type": "object", "additionalProperties": _text(maxLength=4), "maxProperties": 2},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {
            "spec": _object({"a": _text()})}},
        "choice": _object(
            {"a": _text(), "b": _text()}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]
        ),
        "some": _object({"a": _text(), "b": _text()}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "banned": _object({"a": _text()}, **{"not": {"required": ["a"]}}),
        "nothing": _text(nullable=True),
        "given": _text(default="x"),
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "items": _list({"type": "integer"}, maxItems=10, **{"x-kubernetes-validations": [
            {"rule": "self.all(x, x > 0)", "message": "items are above zero"}]}),
        "quantity": _text(maxLength=20, **{"x-kubernetes-validations": [
            {"rule": "isQuantity(self)", "messageExpression": "'no quantity: ' + self"}]}),
        "fixed": _text(maxLength=20, **{"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
        "kindly": _text(maxLength=20, **{"x-kubernetes-validations": [
            {"rule": "self.startsWith('k')", "reason": "FieldValueForbidden"}]}),
    },
    required=["size"],
    **{"x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
         "message": "low is above high", "fieldPath": ".low"},
    ]},
)  # fmt: skip

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _object({"spec": _SPEC}, required=["spec"])},
                "subresources": {"status": {}},
            }
        ],
    },
}


def _read() -> tuple[dict[str, str], dict[str, str]]:
    text = Path(__file__).with_suffix(".yaml").read_text()
    parts = text.split("# =====\n")
    found = [dict(_named(each) for each in part.split("---\n# ")[1:]) for part in parts]
    return found[0], found[1]


def _named(part: str) -> tuple[str, str]:
    name, _, manifest = part.partition("\n")
    return name, manifest


DESCRIBED, IN_CODE = _read()
"""Of the second an apiserver finds the fault in code, which no schema tells of."""

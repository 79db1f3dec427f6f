"""A CRD of our own, small enough to read, with a bit of everything."""

from __future__ import annotations

from typing import Any

KEY = "apis/example.com/v1"
COMPONENT = "com.example.v1.Widget"


def widget(
    schema: Any = None, *, kind: str = "Widget", plural: str = "widgets", **version: Any
) -> dict[str, Any]:
    """A namespaced CRD with one served version; ``version`` are further fields of that."""
    root = {"type": "object", "properties": {"spec": {"type": "object"}}} if schema is None else schema
    entry = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [entry],
        },
    }


def of_spec(spec: Any) -> dict[str, Any]:
    """A root schema whose only field, ``spec``, has this schema."""
    return {"type": "object", "properties": {"spec": spec}}

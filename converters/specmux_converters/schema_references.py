"""Resolve references between schemas of a document.

Kubernetes writes a reference with annotations as ``allOf`` with one element, since OpenAPI 3.0 ignores
siblings of ``$ref``; custom resources have inline schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.references import PREFIX
from specmux_converters.references import component_of as component_of

MOST_HOPS: Final = 32
"""Longest chain of references; a longer one is assumed to be circular."""

EMPTY: Final[Mapping[str, Any]] = {}


def reference_to(component: str) -> str:
    """The reference to a component whose name needs no escaping, as in Kubernetes."""
    return f"{PREFIX}schemas/{component}"


def resolve_schema(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema``, or the component that it refers to, without siblings of the reference.

    An empty schema, which allows anything, for a dangling or circular reference.
    """
    for _ in range(MOST_HOPS):
        name = component_of(schema)
        if name is None:
            return schema
        target = schemas.get(name)
        if not isinstance(target, dict):
            return EMPTY
        schema = target
    return EMPTY

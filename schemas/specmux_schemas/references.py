"""The schema that is meant where a document refers to one.

Kubernetes writes a reference with annotations beside it as ``allOf`` with one element, since OpenAPI 3.0
ignores what stands beside ``$ref``; custom resources have their schemas in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.references import PREFIX
from specmux_converters.references import component_of as component_of

MOST_HOPS: Final = 32
"""References that lead to references; more is a ring."""

EMPTY: Final[Mapping[str, Any]] = {}


def schemas_of(document: Document) -> Mapping[str, Any]:
    """The document's schemas by component name."""
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    return schemas if isinstance(schemas, dict) else EMPTY


def reference_to(component: str) -> str:
    """The reference to a component whose name needs no escaping, as Kubernetes' names do not."""
    return f"{PREFIX}schemas/{component}"


def resolved(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema``, or the component it stands for; without what stands beside the reference.

    An empty schema where a reference dangles, or leads round in a ring: anything goes there.
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

"""Which components of several documents are the same, and what each is called in one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson

from specmux_converters.errors import InvalidDocument
from specmux_converters.group_versions import GroupVersion
from specmux_converters.reference_walk import KINDS, references

PREFIX: Final = "#/components/"


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """Where a component stands. ``kind`` is its section of ``components`` ("schemas")."""

    group_version: GroupVersion
    kind: str
    name: str


def component_of(ref: str, group_version: GroupVersion) -> Component | None:
    """The component that a reference in a document points at or into."""
    if not ref.startswith(PREFIX):
        return None
    kind, _, rest = ref.removeprefix(PREFIX).partition("/")
    name = rest.partition("/")[0].replace("~1", "/").replace("~0", "~")
    return Component(group_version, kind, name)


def choose_names(nodes: Mapping[Component, Any]) -> dict[Component, str]:
    """A name for each component: equal ones of one kind and name share it, the others get ``_v2``, ``_v3``.

    Depends on what the components say and on the order of their group-versions' names, and on nothing else.
    """
    classes = _classes(nodes)
    taken = {(component.kind, component.name) for component in nodes}
    names: dict[Component, str] = {}
    chosen: dict[tuple[str, str], dict[bytes, str]] = {}
    for component in sorted(nodes):
        variants = chosen.setdefault((component.kind, component.name), {})
        variant = classes[component]
        if variant not in variants:
            variants[variant] = _free_name(component, taken) if variants else component.name
            taken.add((component.kind, variants[variant]))
        names[component] = variants[variant]
    return names


def _free_name(component: Component, taken: set[tuple[str, str]]) -> str:
    number = 2
    while (component.kind, f"{component.name}_v{number}") in taken:
        number += 1
    return f"{component.name}_v{number}"


def _classes(nodes: Mapping[Component, Any]) -> dict[Component, bytes]:
    """A digest for each component, equal where it and all that it refers to are: the coarsest partition that
    tells different ones apart, refined from their texts until it stays the same (cycles are no obstacle)."""
    edges: dict[Component, list[Component]] = {}
    digests: dict[Component, bytes] = {}
    for component, node in nodes.items():
        digests[component] = _digest(_text(node))
        refs = (
            component_of(ref, component.group_version)
            for ref in sorted(references(node, KINDS[component.kind]))
        )
        edges[component] = [ref for ref in refs if ref is not None and ref in nodes]
    count = len(set(digests.values()))
    while True:
        digests = {
            component: _digest(own, *(digests[other] for other in edges[component]))
            for component, own in digests.items()
        }
        refined = len(set(digests.values()))
        if refined == count:
            return digests
        count = refined


def _digest(*parts: bytes) -> bytes:
    return sha256(b"\0".join(parts)).digest()


def _text(node: Any) -> bytes:
    try:
        return orjson.dumps(node, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidDocument(f"not JSON: {error}") from error

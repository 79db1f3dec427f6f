"""Determine which components of several documents are equal, and their names in one document."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from specmux_converters.errors import InvalidDocument
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import unescape
from specmux_converters.references import KINDS, PREFIX, references


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """The place of a component. ``kind``: its section of ``components`` ("schemas")."""

    group_version: GroupVersion
    kind: str
    name: str


def component_of(ref: str, group_version: GroupVersion, known: Container[Component]) -> Component | None:
    """The known component that a reference in a document refers to, as a whole or in part. A fragment may be
    escaped twice, as a pointer and as part of a URI (RFC 6901, section 6)."""
    if not ref.startswith(PREFIX):
        return None
    kind, _, rest = ref.removeprefix(PREFIX).partition("/")
    token = rest.partition("/")[0]
    for pointer in (token, unquote(token)):
        component = Component(group_version, kind, unescape(pointer))
        if component in known:
            return component
    return None


def choose_names(nodes: Mapping[Component, Any]) -> dict[Component, str]:
    """A name for each component; equal ones of one kind and name share it. Components that most documents
    have keep the name, so that a document that changes alone has its component renamed; others get ``_v2``.

    Depends only on the content of components and the sorted order of group-versions.
    """
    classes = _classes(nodes)
    taken = {(component.kind, component.name) for component in nodes}
    variants: dict[tuple[str, str], dict[int, list[Component]]] = {}
    for component in sorted(nodes):
        same = variants.setdefault((component.kind, component.name), {})
        same.setdefault(classes[component], []).append(component)
    names: dict[Component, str] = {}
    for same in variants.values():
        # of equally frequent ones, the first in order
        first, *others = sorted(same.values(), key=len, reverse=True)
        names.update({component: component.name for component in first})
        for members in others:
            name = _free_name(members[0], taken)
            taken.add((members[0].kind, name))
            names.update(dict.fromkeys(members, name))
    return names


def _free_name(component: Component, taken: set[tuple[str, str]]) -> str:
    number = 2
    while (component.kind, f"{component.name}_v{number}") in taken:
        number += 1
    return f"{component.name}_v{number}"


def _classes(nodes: Mapping[Component, Any]) -> dict[Component, int]:
    """A number for each component, equal if it and everything that it refers to are equal: the coarsest
    partition, even with cycles.

    Starts with components of equal name and text. A class is split if its members refer to different classes;
    the larger part keeps its number, so a component's number changes at most as often as its class can be
    halved (Hopcroft, 1971). Otherwise a long chain of references would take quadratic time.
    """
    edges = {component: _edges(component, node, nodes) for component, node in nodes.items()}
    users: dict[Component, list[Component]] = {}
    members: dict[tuple[str, str, bytes], set[Component]] = {}
    for component, node in nodes.items():
        for other in edges[component]:
            if other is not None:
                users.setdefault(other, []).append(component)
        members.setdefault((component.kind, component.name, content(node)), set()).add(component)
    classes = list(members.values())
    number = {component: index for index, each in enumerate(classes) for component in each}
    waiting = set(nodes)
    while waiting:
        parts: dict[int, dict[tuple[int | None, ...], set[Component]]] = {}
        for component in waiting:
            meant = tuple(None if other is None else number[other] for other in edges[component])
            parts.setdefault(number[component], {}).setdefault(meant, set()).add(component)
        waiting = set()
        for index, split in parts.items():
            for part in _all_but_the_largest(classes[index], list(split.values())):
                classes[index] -= part
                number.update(dict.fromkeys(part, len(classes)))
                classes.append(part)
                waiting.update(user for component in part for user in users.get(component, ()))
    return number


def _all_but_the_largest(whole: set[Component], parts: list[set[Component]]) -> list[set[Component]]:
    """``parts`` without the largest, counting the members of ``whole`` that are in none as one part."""
    if len(whole) > sum(map(len, parts)):
        parts = [*parts, whole.difference(*parts)]
    largest = max(parts, key=len)
    return [part for part in parts if part is not largest]


def _edges(component: Component, node: Any, nodes: Mapping[Component, Any]) -> list[Component | None]:
    """The components that it refers to; None for a dangling reference. Components with equal text have
    equally many, in the same order."""
    refs = sorted(references(node, KINDS.get(component.kind, "")))
    return [component_of(ref, component.group_version, nodes) for ref in refs]


def content(node: Any) -> bytes:
    """Equal for equivalent values. Python's own comparison treats 1, 1.0 and true as equal."""
    try:
        return orjson.dumps(node, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidDocument(f"not JSON: {error}") from error

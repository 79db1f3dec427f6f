"""Which components of several documents are the same, and what each is called in one document."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.errors import InvalidDocument
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import unescape
from specmux_converters.references import KINDS, PREFIX, references


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """Where a component stands. ``kind`` is its section of ``components`` ("schemas")."""

    group_version: GroupVersion
    kind: str
    name: str


def component_of(ref: str, group_version: GroupVersion, known: Container[Component]) -> Component | None:
    """The known component that a reference in a document points at or into. A fragment may be escaped twice,
    as a pointer and as a part of a URI (RFC 6901, section 6)."""
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
    """A name for each component: equal ones of one kind and name share it. Those that most documents have
    keep it, so that a document that changes alone is the one that is renamed; the others get ``_v2``.

    Depends on what the components say and on the order of their group-versions' names, and on nothing else.
    """
    classes = _classes(nodes)
    taken = {(component.kind, component.name) for component in nodes}
    variants: dict[tuple[str, str], dict[int, list[Component]]] = {}
    for component in sorted(nodes):
        same = variants.setdefault((component.kind, component.name), {})
        same.setdefault(classes[component], []).append(component)
    names: dict[Component, str] = {}
    for same in variants.values():
        first, *others = sorted(same.values(), key=len, reverse=True)  # of equally many, the first in order
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
    """A number for each component, equal where it and all that it refers to are: the coarsest partition that
    tells different ones apart (cycles are no obstacle).

    It begins with those of one name and text. A class is split where its members refer to different ones; the
    larger part keeps its number, so that a component's changes no more often than its class can be halved
    (Hopcroft, 1971): without that, a long chain of references takes quadratic time.
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
    """``parts``, and what of ``whole`` is in none of them: what did not have to be looked at is one part."""
    if len(whole) > sum(map(len, parts)):
        parts = [*parts, whole.difference(*parts)]
    largest = max(parts, key=len)
    return [part for part in parts if part is not largest]


def _edges(component: Component, node: Any, nodes: Mapping[Component, Any]) -> list[Component | None]:
    """What it refers to; None for what is not there. Components of one text have as many, in one order."""
    refs = sorted(references(node, KINDS.get(component.kind, "")))
    return [component_of(ref, component.group_version, nodes) for ref in refs]


def content(node: Any) -> bytes:
    """Equal for what says the same. Python's own comparison takes 1, 1.0 and true for equal."""
    try:
        return orjson.dumps(node, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidDocument(f"not JSON: {error}") from error

"""Suggest a field for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from specmux_tools.validation.compiled_kinds import CompiledKind, TypedKind
from specmux_tools.validation.decoding.typed_nodes import Node, Struct, below
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import Structural

_LIKENESS: Final = 0.7


def hint_for(kind: CompiledKind, path: Path) -> str | None:
    """A field beside ``path`` with a name similar to its last part; None if there is none."""
    name = path[-1]
    if not isinstance(name, str):
        return None
    names = sorted(
        _typed_fields(kind.node, path[:-1])
        if isinstance(kind, TypedKind)
        else _custom_fields(kind.structural, path[:-1])
    )
    same = [known for known in names if known.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, names, n=1, cutoff=_LIKENESS)), None)


def _typed_fields(node: Node, path: Path) -> Iterable[str]:
    found: Node | None = node
    for part in path:
        found = below(found, part)
    return found.fields if isinstance(found, Struct) else ()


def _custom_fields(schema: Structural, path: Path) -> Iterable[str]:
    found: Structural | None = schema
    for part in path:
        if found is None:
            return ()
        found = found.items if isinstance(part, int) else found.properties.get(part) or found.additional
    return found.properties if found is not None else ()

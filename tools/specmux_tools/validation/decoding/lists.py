"""Lists, opened as kubectl opens them before it sends objects (cli-runtime, FlattenListVisitor): ``List``,
lists of a kind, and lists within lists.

An item that says neither its kind nor its version is of the list's (unstructured/scheme.go, decodeToList).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from specmux_tools.validation.decoding.body import Body, Head, with_head

MOST_NESTED: Final = 32
"""Lists within lists that are opened."""
TOO_DEEP: Final = f"lists are nested more than {MOST_NESTED} deep, and not opened"


def is_list(value: Any) -> bool:
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list):
        return False
    kind = value.get("kind")
    return (isinstance(kind, str) and kind.endswith("List")) or (bool(items) and all(map(_has_type, items)))


def flattened(body: Body) -> Iterator[Body]:
    """The body, or a list and its items, in their order. A list that is nested too deeply stays closed."""
    yield body
    if is_list(body.value) and not is_too_deep(body):
        inside = body.inside("items")
        for index, item in enumerate(inside.value):
            yield from flattened(inside.inside(index, head=_missing_head(item, body.value)))


def is_too_deep(body: Body) -> bool:
    """Whether it is a list that ``flattened`` leaves closed."""
    return len(body.prefix) >= 2 * MOST_NESTED and is_list(body.value)


def objects_in(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The object itself, or those of a list."""
    if is_list(value) and depth < MOST_NESTED:
        for item in value["items"]:
            yield from objects_in(with_head(item, _missing_head(item, value)), depth + 1)
    elif isinstance(value, dict):
        yield value


def _has_type(item: Any) -> bool:
    return isinstance(item, dict) and bool(item.get("apiVersion")) and bool(item.get("kind"))


def _missing_head(item: Any, of: dict[str, Any]) -> Head:
    if not isinstance(item, dict) or item.get("apiVersion") or item.get("kind"):
        return ()
    kind = str(of.get("kind")).removesuffix("List")
    return (("apiVersion", of.get("apiVersion")), ("kind", kind)) if kind else ()

"""What a document says and another does not, and what reports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specmux_converters.losses import pointer_to


def missing(before: Any, after: Any, *path: str | int) -> Iterator[str]:
    """Pointers of what ``before`` says and ``after`` does not; the edition of OpenAPI says nothing."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            said = key in after or is_unwrapped(key, value, after) or is_beside_null(key, after)
            if not said and (*path, key) != ("openapi",):
                yield pointer_to(*path, key)
            elif key in after and (*path, key) != ("openapi",):
                yield from missing(value, after[key], *path, key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from missing(old, new, *path, index)
    else:
        yield pointer_to(*path)


def is_unwrapped(key: str, value: Any, after: dict[str, Any]) -> bool:
    """A reference is in ``allOf`` because of a default beside it alone."""
    return key == "allOf" and value == [{"$ref": after.get("$ref")}]


def is_beside_null(key: str, after: dict[str, Any]) -> bool:
    """What a nullable schema has to fulfil is an alternative to null."""
    return key == "allOf" and {"enum": [None], "nullable": True} in after.get("anyOf", ())


def ancestors(pointer: str) -> Iterator[str]:
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]

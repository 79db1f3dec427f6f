"""Fields with the same meaning in both standards, and the types of their values.

A field of the wrong type is refused, since a copy would make the output invalid. A null counts as absent (Go
prints nil as null), and is reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any, Final, TypeAlias

from specmux_converters.from_swagger2.reading.trace import Trace

Kinds: TypeAlias = frozenset[type]

TEXT: Final[Kinds] = frozenset({str})
FLAG: Final[Kinds] = frozenset({bool})
NUMBER: Final[Kinds] = frozenset({int, float})
COUNT: Final[Kinds] = frozenset({int})
ARRAY: Final[Kinds] = frozenset({list})
OBJECT: Final[Kinds] = frozenset({dict})
ANYTHING: Final[Kinds] = frozenset({str, bool, int, float, list, dict, type(None)})

NEVER: Final[Kinds] = frozenset()

NO_OTHERS: Final[Set[str]] = frozenset()

DESCRIPTION: Final[Mapping[str, Kinds]] = {"description": TEXT}

_NAMES: Final = {str: "a string", bool: "a boolean", int: "a number", list: "an array", dict: "an object"}

OBJECTS: Final[Mapping[str, tuple[Mapping[str, Kinds], Set[str]]]] = {
    "externalDocs": ({"url": TEXT, "description": TEXT}, {"url"}),
    "contact": ({"name": TEXT, "url": TEXT, "email": TEXT}, set()),
    "license": ({"name": TEXT, "url": TEXT}, {"name"}),
    "xml": ({"name": TEXT, "namespace": TEXT, "prefix": TEXT, "attribute": FLAG, "wrapped": FLAG}, set()),
}
"""Objects without schemas inside: their fields, and the required ones."""


def keep_fields(
    node: Mapping[str, Any], fields: Mapping[str, Kinds], others: Set[str], trace: Trace
) -> dict[str, Any]:
    """The node's extensions and those of ``fields`` that it has, checked.

    ``others``: fields that the caller converts itself; any further field is not in the standard.
    """
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in others:
            continue
        if value.__class__ in fields.get(key, NEVER):
            result[key] = (
                plain_object(key, value, trace) if value.__class__ is dict and key in OBJECTS else value
            )
        elif key[:2] == "x-":
            result[key] = value
        elif key in fields:
            is_present(key, value, fields[key], trace)
        else:
            trace.keep_unknown(key, value, result)
    return result


def is_present(key: str, value: Any, kinds: Kinds, trace: Trace) -> bool:
    """False for null. Raises InvalidDocument for a value of the wrong type."""
    if value.__class__ in kinds:
        return True
    if value is None:
        trace.note("null", "stands for nothing; left out", key)
        return False
    return trace.refuse(f"{name_of(kinds)} is required", key)


def name_of(kinds: Kinds) -> str:
    """The types in words."""
    return next(name for kind, name in _NAMES.items() if kind in kinds)


def texts(node: Mapping[str, Any], key: str, trace: Trace) -> None:
    """Raises InvalidDocument unless the array at ``key``, if present, consists of strings."""
    for index, item in enumerate(node.get(key) or ()):
        if item.__class__ is not str:
            trace.refuse("a string is required", key, index)


def without_repeats(key: str, items: list[Any], trace: Trace) -> list[Any]:
    """The list at ``key`` as a set of JSON values: keeps the first of equal ones and reports the others."""
    found: dict[Hashable, Any] = {}
    for index, item in enumerate(items):
        value = identity(item)
        if value in found:
            trace.note("repeated value", "is there already, and counts once; left out", key, index)
        else:
            found[value] = item
    return items if len(found) == len(items) else list(found.values())


def identity(value: Any) -> Hashable:
    """Equal for equal JSON values: 1 and 1.0 are one number, 1 and true are two values."""
    match value:
        case bool() | None | str():
            return value.__class__, value
        case int() | float():
            return float, value
        case list():
            return list, tuple(map(identity, value))
        case _:
            return dict, frozenset((key, identity(item)) for key, item in value.items())


def is_plain_object(key: str, value: Any) -> bool:
    """Whether it is a valid object for ``key``, one of OBJECTS: each field has its type, or is null."""
    fields, _ = OBJECTS[key]
    return value.__class__ is dict and all(
        item is None or item.__class__ in fields.get(name, ANYTHING) for name, item in value.items()
    )


def plain_object(key: str, value: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """The object at ``key``, one of OBJECTS, checked. The same dict if nothing changes."""
    fields, required = OBJECTS[key]
    known = all(item.__class__ in fields.get(name, frozenset()) for name, item in value.items())
    if known and required <= value.keys():
        return value
    trace.path.append(key)
    result = keep_fields(value, fields, NO_OTHERS, trace)
    for name in sorted(required - result.keys()):
        trace.note(f"{key} without {name}", "OpenAPI 3.0 requires one; an empty one is added")
        result[name] = ""
    trace.path.pop()
    return result

"""Checks the schemas in allOf, anyOf, oneOf and not: they restrict values and define no structure.

Follows upstream's NestedValueValidation (apiextensions-apiserver, pkg/apiserver/schema: validation.go,
complete.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE, INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import pointer_to

JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
NESTING: Final = frozenset({*JUNCTORS, "not"})
EITHER: Final = [{"type": "integer"}, {"type": "string"}]
"""The one anyOf whose branches may have types: the meaning of x-kubernetes-int-or-string."""

UNSTRUCTURED: Final = "must be in the structure too"
"""Reason for a nested schema that restricts a field outside the structure."""

_STRUCTURE: Final = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    PRESERVE_UNKNOWN_FIELDS: "false",
    EMBEDDED_RESOURCE: "false",
    INT_OR_STRING: "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}
"""The required value of each."""

_KEPT_EMPTY: Final = ("required", "x-kubernetes-list-map-keys", "x-kubernetes-validations")

_Path: TypeAlias = tuple[str | int, ...]


def says_either(node: Document) -> bool:
    return node.get("anyOf") == EITHER


def first_says_either(node: Document) -> bool:
    return "allOf" in node and says_either(node["allOf"][0])


def holds_empty(schema: Any) -> bool:
    """Whether the schema has an empty list, which Go distinguishes from none: in memory the schemas
    differ."""
    return isinstance(schema, dict) and any(schema.get(key) == [] for key in _KEPT_EMPTY)


def _is_plain(clauses: Any) -> bool:
    """Whether the clauses are EITHER, as written in the definition."""
    return isinstance(clauses, list) and not any(
        holds_empty(each) or (isinstance(each, dict) and each.get("properties") is not None)
        for each in clauses
    )


def forbidden_structure(node: Document, raw: Document, path: _Path) -> Iterator[InvalidDocument]:
    """Yields structure in the schemas nested in ``node``, the published form; ``raw`` is the original.

    Its anyOf, or that of its first allOf, may be EITHER.
    """
    free_any_of = says_either(node) and _is_plain(raw["anyOf"])
    free_first = first_says_either(node) and _is_plain(raw["allOf"][0]["anyOf"])
    yield from _below(node, path, free_any_of=free_any_of, free_first=free_first)


def _below(
    node: Document, path: _Path, *, free_any_of: bool, free_first: bool = False
) -> Iterator[InvalidDocument]:
    for index, nested in enumerate(node.get("allOf", ())):
        yield from _nested_faults(nested, (*path, "allOf", index), free_any_of=free_first and index == 0)
    for key in ("oneOf",) if free_any_of else ("anyOf", "oneOf"):
        for index, nested in enumerate(node.get(key, ())):
            yield from _nested_faults(nested, (*path, key, index))
    if "not" in node:
        yield from _nested_faults(node["not"], (*path, "not"))


def _nested_faults(nested: Document, path: _Path, *, free_any_of: bool = False) -> Iterator[InvalidDocument]:
    for key, wanted in _STRUCTURE.items():
        if key in nested:
            yield _fault(f"Forbidden: must be {wanted} to be structural", *path, key)
    yield from _below(nested, path, free_any_of=free_any_of)
    if "items" in nested:
        yield from _nested_faults(nested["items"], (*path, "items"))
    for name, field in nested.get("properties", {}).items():
        if name == "metadata":
            yield _fault("Forbidden: must not be specified in a nested context", *path, "properties", name)
        yield from _nested_faults(field, (*path, "properties", name))


def incompleteness(root: Document, path: _Path) -> Iterator[InvalidDocument]:
    """Yields places at which a schema nested at the root restricts a field outside the structure.

    ``root`` is the CRD's schema, already checked. Like upstream, checks only schemas nested at the root.
    """
    yield from _incomplete_below(root, root, path)


def _incomplete_below(node: Document, structure: Document, path: _Path) -> Iterator[InvalidDocument]:
    for key in JUNCTORS:
        for index, nested in enumerate(node.get(key) or ()):
            yield from _incomplete(nested, structure, (*path, key, index))
    yield from _incomplete(node.get("not"), structure, (*path, "not"))


def _incomplete(nested: Document | None, structure: Document, path: _Path) -> Iterator[InvalidDocument]:
    if not nested:
        return
    yield from _incomplete_below(nested, structure, path)
    if isinstance(nested.get("items"), dict):
        if isinstance(structure.get("items"), dict):
            yield from _incomplete(nested["items"], structure["items"], (*path, "items"))
        else:
            yield _fault(UNSTRUCTURED, *path, "items")
    fields = structure.get("properties") or {}
    for name, field in (nested.get("properties") or {}).items():
        if name in fields:
            yield from _incomplete(field, fields[name] or {}, (*path, "properties", name))
        else:
            yield _fault(UNSTRUCTURED, *path, "properties", name)


def _fault(reason: str, *path: str | int) -> InvalidDocument:
    return InvalidDocument(reason, pointer=pointer_to(*path))

"""What the schemas in allOf, anyOf, oneOf and not may say: they restrict values, and have no structure.

Upstream's NestedValueValidation (apiextensions-apiserver, pkg/apiserver/schema: validation.go, complete.go).
"""

from __future__ import annotations

from typing import Final, NoReturn, TypeAlias

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE, INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import pointer_to

JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
NESTING: Final = frozenset({*JUNCTORS, "not"})
EITHER: Final = [{"type": "integer"}, {"type": "string"}]
"""The one anyOf whose clauses have types: what x-kubernetes-int-or-string means."""

UNSTRUCTURED: Final = "must be in the structure too"
"""Of a nested schema that restricts what the structure does not have."""

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
"""What each must be there."""

_Path: TypeAlias = tuple[str | int, ...]


def says_either(node: Document) -> bool:
    return node.get("anyOf") == EITHER


def first_says_either(node: Document) -> bool:
    return "allOf" in node and says_either(node["allOf"][0])


def forbid_structure(node: Document, path: _Path) -> None:
    """Raises InvalidDocument for structure in the schemas nested in ``node``, which is as it is published.

    Its anyOf, or that of its first allOf, may be EITHER.
    """
    _forbid_below(node, path, free_any_of=says_either(node), free_first=first_says_either(node))


def _forbid_below(node: Document, path: _Path, *, free_any_of: bool, free_first: bool = False) -> None:
    for index, nested in enumerate(node.get("allOf", ())):
        _forbid(nested, (*path, "allOf", index), free_any_of=free_first and index == 0)
    for key in ("oneOf",) if free_any_of else ("anyOf", "oneOf"):
        for index, nested in enumerate(node.get(key, ())):
            _forbid(nested, (*path, key, index))
    if "not" in node:
        _forbid(node["not"], (*path, "not"))


def _forbid(nested: Document, path: _Path, *, free_any_of: bool = False) -> None:
    for key, wanted in _STRUCTURE.items():
        if key in nested:
            _refuse(f"Forbidden: must be {wanted} to be structural", *path, key)
    _forbid_below(nested, path, free_any_of=free_any_of)
    if "items" in nested:
        _forbid(nested["items"], (*path, "items"))
    for name, field in nested.get("properties", {}).items():
        if name == "metadata":
            _refuse("Forbidden: must not be specified in a nested context", *path, "properties", name)
        _forbid(field, (*path, "properties", name))


def check_completeness(root: Document, path: _Path) -> None:
    """Raises InvalidDocument where a schema nested at the root restricts what the structure does not have.

    ``root`` is as the CRD has it, read before. Upstream asks this only of what is nested at the root.
    """
    _complete_below(root, root, path)


def _complete_below(node: Document, structure: Document, path: _Path) -> None:
    for key in JUNCTORS:
        for index, nested in enumerate(node.get(key) or ()):
            _complete(nested, structure, (*path, key, index))
    _complete(node.get("not"), structure, (*path, "not"))


def _complete(nested: Document | None, structure: Document, path: _Path) -> None:
    if not nested:
        return
    _complete_below(nested, structure, path)
    if isinstance(nested.get("items"), dict):
        if not isinstance(structure.get("items"), dict):
            _refuse(UNSTRUCTURED, *path, "items")
        _complete(nested["items"], structure["items"], (*path, "items"))
    fields = structure.get("properties") or {}
    for name, field in (nested.get("properties") or {}).items():
        if name not in fields:
            _refuse(UNSTRUCTURED, *path, "properties", name)
        _complete(field, fields[name], (*path, "properties", name))


def _refuse(reason: str, *path: str | int) -> NoReturn:
    raise InvalidDocument(reason, pointer=pointer_to(*path))

"""The schema of one version of a CRD, to the schema that an apiserver publishes for it.

One walk does what upstream does in five (apiextensions-apiserver, pkg/apiserver/schema: convert, validation,
unfold, kubeopenapi; pkg/controller/openapi/builder: buildKubeNative): it checks that the schema is
structural, and writes what a structural schema keeps. Schemas nested in allOf, anyOf, oneOf and not restrict
values and say nothing about their structure: upstream's NestedValueValidation, another kind of node here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

from specmux_converters.crd.keywords import (
    EMBEDDED_RESOURCE,
    INT_OR_STRING,
    KEYWORDS,
    PRESERVE_UNKNOWN_FIELDS,
)
from specmux_converters.crd.object_fields import EMBEDDED_FIELDS, OBJECT_FIELDS
from specmux_converters.crd.patterns import pattern_fault
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import pointer_to

_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_NESTING: Final = frozenset({*_JUNCTORS, "not"})
_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_STRUCTURE: Final = (
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    PRESERVE_UNKNOWN_FIELDS,
    EMBEDDED_RESOURCE,
    INT_OR_STRING,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
"""Keywords that a nested schema may not have."""
_OBJECT_FIELD_TYPES: Final = {"kind": "string", "apiVersion": "string", "metadata": "object"}

_Sections: TypeAlias = "Mapping[str, Callable[[_Walk, Any], Any]]"
"""How the keywords are read for which it matters where they stand."""


class _Level(Enum):
    ROOT = "at the root"
    ITEM = "for array items"
    FIELD = "for object fields"


def publish_schema(schema: Any, *path: str | int) -> Document:
    """The published form of the root schema at ``path``, apiVersion, kind and metadata added.

    Raises InvalidDocument where it is not structural, RecursionError where it is too deep. The result shares
    defaults and enums with ``schema``.
    """
    walk = _Walk(list(path))
    published = walk.structural(schema, _Level.ROOT)
    walk.check_completeness(schema, schema)
    published["properties"] = {**published.get("properties", {}), **OBJECT_FIELDS}
    if EMBEDDED_RESOURCE in published:
        _embed(published)
    return published


class _Walk:
    """``_path`` is where the walk stands; it stays there when the walk is broken off."""

    def __init__(self, path: list[str | int]) -> None:
        self._path = path
        self._sound_patterns: set[str] = set()

    def structural(self, node: Any, level: _Level) -> Document:
        result = self._read(node, self._STRUCTURAL)
        self._check_type(result, level)
        if INT_OR_STRING in result or EMBEDDED_RESOURCE in result:
            self._check_extensions(result)
        if level is _Level.ROOT or EMBEDDED_RESOURCE in result:
            self._check_object_fields(result, level)
        if not _NESTING.isdisjoint(result):
            self._forbid_below(
                result, free_any_of=_says_either(result), free_first=_first_says_either(result)
            )
        if INT_OR_STRING in result:
            _unfold(result)
        if EMBEDDED_RESOURCE in result and level is not _Level.ROOT:
            _embed(result)
        return result

    def check_completeness(self, node: Document, structure: Document) -> None:
        """A field that a nested schema restricts must be one of the structure too.

        Upstream asks this of what is nested at the root and of nothing that is nested below
        (pkg/apiserver/schema/complete.go).
        """
        for key in _JUNCTORS:
            for index, nested in enumerate(node.get(key) or ()):
                self._complete(nested, structure, key, index)
        self._complete(node.get("not"), structure, "not")

    def _complete(self, nested: Document | None, structure: Document, *step: str | int) -> None:
        if not nested:
            return
        self._path += step
        self.check_completeness(nested, structure)
        if isinstance(nested.get("items"), dict):
            if not isinstance(structure.get("items"), dict):
                self._refuse("must be in the structure too", "items")
            self._complete(nested["items"], structure["items"], "items")
        fields = structure.get("properties") or {}
        for name, field in (nested.get("properties") or {}).items():
            if name not in fields:
                self._refuse("must be in the structure too", "properties", name)
            self._complete(field, fields[name], "properties", name)
        del self._path[-len(step) :]

    def _read(self, node: Any, sections: _Sections) -> Document:
        """The keywords of ``node`` as they are published."""
        if node is None:
            return {}
        if not isinstance(node, dict):
            self._refuse("must be an object")
        result: Document = {}
        for key, value in node.items():
            if value is None:
                continue
            content = None
            read = KEYWORDS.get(key)
            if read is not None:
                try:
                    content = read(value)
                except ValueError as fault:
                    self._refuse(str(fault), key)
            elif key in sections:
                self._path.append(key)
                content = sections[key](self, value)
                self._path.pop()
            if content is not None:
                result[key] = content
        return result

    def _nested(self, node: Any) -> Document:
        return self._read(node, self._NESTED)

    def _items(self, value: Any) -> Document | None:
        return self.structural(value, _Level.ITEM) if self._is_one_schema(value) else None

    def _nested_items(self, value: Any) -> Document | None:
        return self._nested(value) if self._is_one_schema(value) else None

    def _is_one_schema(self, items: Any) -> bool:
        """What is neither an object nor an array is as good as absent (v1/marshal.go)."""
        if isinstance(items, list) and items:
            self._refuse("must be a schema, not an array")
        return isinstance(items, dict)

    def _field(self, value: Any) -> Document:
        return self.structural(value, _Level.FIELD)

    def _properties(self, value: Any) -> Document | None:
        return self._fields(value, self._field)

    def _nested_properties(self, value: Any) -> Document | None:
        return self._fields(value, self._nested)

    def _fields(self, value: Any, read: Callable[[Any], Document]) -> Document | None:
        if not isinstance(value, dict):
            self._refuse("must be an object")
        fields: Document = {}
        for name, node in value.items():
            self._path.append(name)
            fields[name] = read(node)
            self._path.pop()
        return fields or None

    def _additional_properties(self, value: Any) -> Document | bool:
        return value if isinstance(value, bool) else self._field(value)

    def _nested_additional_properties(self, value: Any) -> Document | None:
        if value is False:
            return None
        return {} if value is True else self._nested(value)

    def _clauses(self, value: Any) -> list[Document] | None:
        if not isinstance(value, list):
            self._refuse("must be an array")
        clauses: list[Document] = []
        for index, node in enumerate(value):
            self._path.append(index)
            clauses.append(self._nested(node))
            self._path.pop()
        return clauses or None

    def _pattern(self, value: Any) -> str | None:
        if not isinstance(value, str):
            self._refuse("must be a string")
        if value not in self._sound_patterns:
            fault = pattern_fault(value)
            if fault is not None:
                self._refuse(f"no regular expression of Go: {fault}")
            self._sound_patterns.add(value)
        return value or None

    def _check_type(self, node: Document, level: _Level) -> None:
        kind = node.get("type")
        if kind is None and not (INT_OR_STRING in node or PRESERVE_UNKNOWN_FIELDS in node):
            self._refuse(f"must not be empty {level.value}", "type")
        if level is _Level.ROOT and kind not in (None, "object"):
            self._refuse("must be object at the root", "type")
        if level is _Level.ROOT and "additionalProperties" in node:
            self._refuse("must not be used at the root", "additionalProperties")
        if kind == "array" and "items" not in node:
            self._refuse("must be specified", "items")

    def _check_extensions(self, node: Document) -> None:
        if INT_OR_STRING in node:
            for key in (PRESERVE_UNKNOWN_FIELDS, EMBEDDED_RESOURCE):
                if key in node:
                    self._refuse(f"must not be true beside {INT_OR_STRING}", key)
        if EMBEDDED_RESOURCE not in node:
            return
        if node.get("type") != "object":
            self._refuse(f"must be object beside {EMBEDDED_RESOURCE}", "type")
        if "additionalProperties" in node:
            self._refuse(f"must not be used beside {EMBEDDED_RESOURCE}", "additionalProperties")
        if PRESERVE_UNKNOWN_FIELDS not in node and "properties" not in node:
            self._refuse(f"must not be empty beside {EMBEDDED_RESOURCE}", "properties")

    def _check_object_fields(self, node: Document, level: _Level) -> None:
        """apiVersion, kind and metadata have their types; the root's metadata restricts only names."""
        fields = node.get("properties", {})
        for name, kind in _OBJECT_FIELD_TYPES.items():
            if name in fields and fields[name].get("type") != kind:
                self._refuse(f"must be {kind}", "properties", name, "type")
        if level is _Level.ROOT and "metadata" in fields:
            metadata = fields["metadata"]
            allowed = {"type", "default"}
            if metadata.get("properties", {}).keys() <= {"name", "generateName"}:
                allowed.add("properties")
            if metadata.keys() - allowed:
                self._refuse("must specify nothing but name and generateName", "properties", "metadata")

    def _forbid_below(self, node: Document, *, free_any_of: bool = False, free_first: bool = False) -> None:
        """Refuses structure in the schemas nested in ``node``, but in its anyOf or that of its first allOf
        where they are free to say "integer or string"."""
        for index, nested in enumerate(node.get("allOf", ())):
            self._forbid(nested, "allOf", index, free_any_of=free_first and index == 0)
        for key in ("oneOf",) if free_any_of else ("anyOf", "oneOf"):
            for index, nested in enumerate(node.get(key, ())):
                self._forbid(nested, key, index)
        if "not" in node:
            self._forbid(node["not"], "not")

    def _forbid(self, nested: Document, *step: str | int, free_any_of: bool = False) -> None:
        self._path += step
        for key in _STRUCTURE:
            if key in nested:
                self._refuse("must be absent in a nested schema", key)
        self._forbid_below(nested, free_any_of=free_any_of)
        if "items" in nested:
            self._forbid(nested["items"], "items")
        for name, field in nested.get("properties", {}).items():
            if name == "metadata":
                self._refuse("must be absent in a nested schema", "properties", name)
            self._forbid(field, "properties", name)
        del self._path[-len(step) :]

    def _refuse(self, reason: str, *step: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=pointer_to(*self._path, *step))

    _STRUCTURAL: ClassVar[_Sections] = {
        "pattern": _pattern,
        "items": _items,
        "properties": _properties,
        "additionalProperties": _additional_properties,
        **dict.fromkeys(_JUNCTORS, _clauses),
        "not": _nested,
    }
    _NESTED: ClassVar[_Sections] = {
        **_STRUCTURAL,
        "items": _nested_items,
        "properties": _nested_properties,
        "additionalProperties": _nested_additional_properties,
    }


def _says_either(node: Document) -> bool:
    return node.get("anyOf") == _INTEGER_OR_STRING


def _first_says_either(node: Document) -> bool:
    return "allOf" in node and _says_either(node["allOf"][0])


def _unfold(node: Document) -> None:
    """Says in plain OpenAPI what x-kubernetes-int-or-string means, unless one of two forms says it."""
    if _says_either(node) or _first_says_either(node):
        return
    if "anyOf" in node:
        node["allOf"] = [{"anyOf": _INTEGER_OR_STRING}, *node.get("allOf", ())]
    else:
        node["anyOf"] = _INTEGER_OR_STRING


def _embed(node: Document) -> None:
    node["properties"] = {**node.get("properties", {}), **EMBEDDED_FIELDS}
    required = node.get("required", [])
    node["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]

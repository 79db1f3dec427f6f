"""Converts the schema of one version of a CRD to the schema that an apiserver publishes.

One walk does what upstream does in five (apiextensions-apiserver, pkg/apiserver/schema: convert, validation,
unfold, kubeopenapi; pkg/controller/openapi/builder: buildKubeNative): it checks that the schema is structural
and writes what a structural schema keeps. Rejections use upstream's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final, NoReturn

from specmux_converters.crd.keywords import (
    DEFINED_FIELDS,
    DESCRIBING,
    EMBEDDED_RESOURCE,
    INT_OR_STRING,
    KEYWORDS,
    PRESERVE_UNKNOWN_FIELDS,
    UNIONS,
)
from specmux_converters.crd.nested import (
    EITHER,
    NESTING,
    first_says_either,
    forbidden_structure,
    holds_empty,
    incompleteness,
    says_either,
)
from specmux_converters.crd.templates import BUNDLED, EMBEDDED_FIELDS, Templates
from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument
from specmux_converters.go.regexp import pattern_fault
from specmux_converters.go.text import quote_text
from specmux_converters.losses import pointer_to

_OBJECT_FIELD_TYPES: Final = {"kind": "string", "apiVersion": "string", "metadata": "object"}

_SECTIONS: Final = frozenset({"pattern", "items", "properties", "additionalProperties", *NESTING})
"""Keywords whose meaning depends on their position."""


class _Level(Enum):
    ROOT = "at the root"
    ITEM = "for specified array items"
    FIELD = "for specified object fields"


def publish_schema(schema: Any, *path: str | int, templates: Templates = BUNDLED) -> Document:
    """The published form of the root schema at ``path``, with apiVersion, kind and metadata.

    Raises InvalidDocument if it is not structural, RecursionError if it is too deep. The result shares
    defaults and enums with ``schema``.
    """
    walk = _Walk(list(path), templates)
    published = walk.structural(schema, _Level.ROOT)
    for fault in (*walk.faults, *incompleteness(schema, path)):
        raise fault
    walk.describe(published, templates.object_fields)
    if EMBEDDED_RESOURCE in published:
        _embed(published)
    return published


def structural_faults(schema: Any) -> list[InvalidDocument]:
    """All reasons why the schema is not structural. Raises the one that prevents any further check."""
    walk = _Walk([], replace(BUNDLED, has_examples=True))  # upstream keeps examples in its structure
    walk.structural(schema, _Level.ROOT)
    return [*walk.faults, *incompleteness(schema, ())]


class _Walk:
    """``_path`` is the current place, also after an error was raised. ``faults`` are those that do not stop
    the walk."""

    def __init__(self, path: list[str | int], templates: Templates) -> None:
        self._path = path
        self._keeps_definition = templates.keeps_definition
        more = {
            **(DESCRIBING if templates.has_examples else {}),
            **(UNIONS if templates.keeps_definition else {}),
        }
        self._keywords = {**KEYWORDS, **more} if more else KEYWORDS
        self._sound_patterns: set[str] = set()
        self.faults: list[InvalidDocument] = []

    def structural(self, node: Any, level: _Level) -> Document:
        result = self._read_keywords(node, is_nested=False)
        self._check_type(result, level)
        if INT_OR_STRING in result or EMBEDDED_RESOURCE in result:
            self._check_extensions(result)
        if level is _Level.ROOT or EMBEDDED_RESOURCE in result:
            self._check_object_fields(result, node, level)
        if not NESTING.isdisjoint(result):
            self.faults += forbidden_structure(result, node, tuple(self._path))
        if INT_OR_STRING in result:
            _unfold(result)
        if EMBEDDED_RESOURCE in result and level is not _Level.ROOT:
            self.describe(result, EMBEDDED_FIELDS)
            _embed(result)
        return result

    def describe(self, node: Document, fields: Mapping[str, Any]) -> None:
        """Replaces the schemas of fields that every object has with those that an apiserver publishes."""
        own = node.get("properties", {})
        defined = {
            name: {key: value for key, value in own[name].items() if key != "description"}
            for name in fields
            if name in own
        }
        if self._keeps_definition and defined:
            node[DEFINED_FIELDS] = defined
        node["properties"] = {**own, **fields}

    def _read_keywords(self, node: Any, *, is_nested: bool) -> Document:
        """The keywords of ``node`` in published form."""
        if node is None:
            return {}
        if not isinstance(node, dict):
            self._refuse("must be an object")
        result: Document = {}
        for key, value in node.items():
            if value is None:
                continue
            content = None
            read = self._keywords.get(key)
            if read is not None:
                try:
                    content = read(value)
                except ValueError as fault:
                    self._fault(str(fault), key)
                    content = value if key == "type" else None
            elif key in _SECTIONS:
                self._path.append(key)
                content = self._section(key, value, is_nested=is_nested)
                self._path.pop()
            if content is not None:
                result[key] = content
        return result

    def _section(self, key: str, value: Any, *, is_nested: bool) -> Any:
        match key:
            case "pattern":
                return self._pattern(value)
            case "properties":
                return self._fields(value, is_nested=is_nested)
            case "items":
                # A value that is neither object nor array counts as absent (v1/marshal.go).
                if isinstance(value, list) and value:
                    self._refuse("must be a schema, not an array")
                if not isinstance(value, dict):
                    return None
                return self._read_nested(value) if is_nested else self.structural(value, _Level.ITEM)
            case "additionalProperties" if isinstance(value, bool):
                return value if not is_nested else {} if value else None
            case "additionalProperties" if not is_nested:
                return self.structural(value, _Level.FIELD)
            case "additionalProperties" | "not":
                return self._read_nested(value)
            case _:
                return self._clauses(value)

    def _read_nested(self, node: Any) -> Document:
        return self._read_keywords(node, is_nested=True)

    def _fields(self, value: Any, *, is_nested: bool) -> Document | None:
        if not isinstance(value, dict):
            self._refuse("must be an object")
        fields: Document = {}
        for name, node in value.items():
            self._path.append(name)
            fields[name] = self._read_nested(node) if is_nested else self.structural(node, _Level.FIELD)
            self._path.pop()
        return fields or None

    def _clauses(self, value: Any) -> list[Document] | None:
        if not isinstance(value, list):
            self._refuse("must be an array")
        clauses: list[Document] = []
        for index, node in enumerate(value):
            self._path.append(index)
            clauses.append(self._read_nested(node))
            self._path.pop()
        return clauses or None

    def _pattern(self, value: Any) -> str | None:
        if not isinstance(value, str):
            self._refuse("must be a string")
        if value not in self._sound_patterns:
            fault = pattern_fault(value)
            if fault is not None:
                words = "must be a valid regular expression, but isn't"
                self._fault(f"Invalid value: {quote_text(value)}: {words}: {fault}")
            else:
                self._sound_patterns.add(value)
        return value or None

    def _check_type(self, node: Document, level: _Level) -> None:
        kind = node.get("type")
        is_typed = {INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS, EMBEDDED_RESOURCE} & node.keys()
        if kind is None and not is_typed:
            self._fault(f"Required value: must not be empty {level.value}", "type")
        if level is _Level.ROOT and kind not in (None, "object"):
            self._fault(f"Invalid value: {quote_text(str(kind))}: must be object at the root", "type")
        if level is _Level.ROOT and "additionalProperties" in node:
            self._fault("Forbidden: must not be used at the root", "additionalProperties")
        if kind == "array" and "items" not in node:
            self._fault("Required value: must be specified", "items")

    def _check_extensions(self, node: Document) -> None:
        if INT_OR_STRING in node:
            for key in (PRESERVE_UNKNOWN_FIELDS, EMBEDDED_RESOURCE):
                if key in node:
                    self._fault(f"Invalid value: true: must be false if {INT_OR_STRING} is true", key)
        if EMBEDDED_RESOURCE not in node:
            return
        if node.get("type") != "object":
            found = f"Invalid value: {quote_text(str(node['type']))}" if "type" in node else "Required value"
            self._fault(f"{found}: must be object if {EMBEDDED_RESOURCE} is true", "type")
        if "additionalProperties" in node:
            reason = f"Forbidden: must not be used if {EMBEDDED_RESOURCE} is set"
            self._fault(reason, "additionalProperties")
        if PRESERVE_UNKNOWN_FIELDS not in node and "properties" not in node:
            words = f"must not be empty if {EMBEDDED_RESOURCE} is true without {PRESERVE_UNKNOWN_FIELDS}"
            self._fault(f"Required value: {words}", "properties")

    def _check_object_fields(self, node: Document, raw: Document, level: _Level) -> None:
        """Checks that apiVersion, kind and metadata have their types, and that the root's metadata restricts
        only names."""
        fields = node.get("properties", {})
        for name, kind in _OBJECT_FIELD_TYPES.items():
            if name in fields and fields[name].get("type") != kind:
                found = quote_text(str(fields[name].get("type", "")))
                self._fault(f"Invalid value: {found}: must be {kind}", "properties", name, "type")
        if level is _Level.ROOT and "metadata" in fields:
            metadata = fields["metadata"]
            allowed = {"type", "default"}
            if metadata.get("properties", {}).keys() <= {"name", "generateName"}:
                allowed.add("properties")
            if metadata.keys() - allowed or holds_empty(raw["properties"]["metadata"]):
                words = "must not specify anything other than name and generateName"
                reason = f"Forbidden: {words}, but metadata is implicitly specified"
                self._fault(reason, "properties", "metadata")

    def _fault(self, reason: str, *step: str | int) -> None:
        self.faults.append(InvalidDocument(reason, pointer=pointer_to(*self._path, *step)))

    def _refuse(self, reason: str, *step: str | int) -> NoReturn:
        raise InvalidDocument(reason, pointer=pointer_to(*self._path, *step))


def _unfold(node: Document) -> None:
    """Adds the meaning of x-kubernetes-int-or-string in plain OpenAPI, unless it is already there in one of
    two forms."""
    if says_either(node) or first_says_either(node):
        return
    if "anyOf" in node:
        node["allOf"] = [{"anyOf": EITHER}, *node.get("allOf", ())]
    else:
        node["anyOf"] = EITHER


def _embed(node: Document) -> None:
    node["properties"] |= EMBEDDED_FIELDS
    required = node.get("required", [])
    node["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]

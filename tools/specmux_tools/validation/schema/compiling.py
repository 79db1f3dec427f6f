"""Compiles the published schemas of custom resources to checks.

For readers of plain OpenAPI a document repeats itself (``anyOf`` beside x-kubernetes-int-or-string,
apiVersion and kind of embedded objects). An apiserver checks by the definition, so these additions are
removed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.keywords import DEFINED_FIELDS, EMBEDDED_RESOURCE, INT_OR_STRING
from specmux_converters.crd.nested import EITHER
from specmux_converters.go.regexp import Pattern
from specmux_converters.json_values import mapping, texts
from specmux_converters.references import resolve_schema
from specmux_converters.releases import LEAST_TYPED, NEWEST, NUMERIC_FORMATS
from specmux_tools.validation.schema.formats import StringFormat, find_format
from specmux_tools.validation.schema.nodes import (
    Branches,
    ListLimits,
    NumberLimits,
    ObjectLimits,
    SchemaNode,
    TextLimits,
)
from specmux_tools.validation.schema.numeric_formats import numeric_format, numeric_type, whole_numbers
from specmux_tools.validation.schema.structural import META_FIELDS, MOST_DEPTH

_EITHER_TYPE: Final = ("integer", "string")
_LIST_KEYWORDS: Final = frozenset({"items", "maxItems", "minItems", "uniqueItems"})
_OBJECT_KEYWORDS: Final = frozenset(
    {"properties", "additionalProperties", "required", "maxProperties", "minProperties"}
)
_BRANCH_KEYWORDS: Final = frozenset({"anyOf", "oneOf", "allOf", "not"})


class SchemaCompiler:
    """Compiles the schemas of one document, whose components are ``schemas``. Compiles each pattern once. The
    checked formats depend on the release. ``is_published``: x-kubernetes-int-or-string is repeated as types,
    for plain OpenAPI; otherwise it implies no type, as where an apiserver validates defaults."""

    def __init__(self, schemas: Mapping[str, Any], *, minor: int = NEWEST, is_published: bool = True) -> None:
        self._schemas = schemas
        self._minor = minor
        self._has_numeric_formats = NUMERIC_FORMATS.is_in(minor)
        self._types_least = LEAST_TYPED.is_in(minor)
        self._is_whole = whole_numbers(minor)
        self._is_published = is_published
        self._patterns: dict[str, Pattern] = {}

    def root(self, schema: Mapping[str, Any]) -> SchemaNode:
        """Compiles the schema of a kind: apiVersion, kind and metadata are checked by the definition, where
        it is known, and otherwise by checks of their own."""
        return self._node(schema, 0, is_embedded=True)

    def inner(self, schema: Mapping[str, Any]) -> SchemaNode:
        """Compiles the schema of a nested value."""
        return self._node(schema, 1)

    def _node(self, schema: Any, depth: int, *, is_embedded: bool = False) -> SchemaNode:
        if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
            return SchemaNode()
        schema = resolve_schema(self._schemas, schema)
        is_either = self._is_published and schema.get(INT_OR_STRING) is True
        is_embedded = is_embedded or schema.get(EMBEDDED_RESOURCE) is True
        kind = schema.get("type")
        form = self._text_format(schema) if "format" in schema else None
        numeric = numeric_format(schema) if self._has_numeric_formats and form is None else ""
        return SchemaNode(
            types=_EITHER_TYPE if is_either else (kind,) if isinstance(kind, str) and kind else (),
            format=form.name if form else numeric,
            is_nullable=schema.get("nullable") is True,
            enum=_list(schema, "enum"),
            text=self._text(schema, form),
            number=self._number(schema),
            items=self._items(schema, depth),
            fields=self._fields(schema, depth, META_FIELDS if is_embedded else frozenset()),
            branches=self._branches(schema, depth, is_either=is_either),
            is_whole=self._is_whole,
        )

    def _text(self, schema: Mapping[str, Any], form: StringFormat | None) -> TextLimits | None:
        most, least = _count(schema, "maxLength"), _count(schema, "minLength")
        pattern = self._pattern(schema)
        if most is None and least is None and pattern is None and form is None:
            return None
        return TextLimits(most, least, pattern, form, self._types_least)

    def _text_format(self, schema: Mapping[str, Any]) -> StringFormat | None:
        if self._has_numeric_formats and schema.get("type") not in (None, "", "string"):
            return None
        form = find_format(schema.get("format"))
        return form if form is None or form.since is None or form.since.is_in(self._minor) else None

    def _number(self, schema: Mapping[str, Any]) -> NumberLimits | None:
        numeric = numeric_type(schema) if self._has_numeric_formats else None
        multiple, most, least = (_bound(schema, name) for name in ("multipleOf", "maximum", "minimum"))
        if multiple is None and most is None and least is None and numeric is None:
            return None
        return NumberLimits(
            multiple,
            most,
            least,
            schema.get("exclusiveMaximum") is True,
            schema.get("exclusiveMinimum") is True,
            numeric,
            self._is_whole,
        )

    def _pattern(self, schema: Mapping[str, Any]) -> Pattern | None:
        text = schema.get("pattern")
        if not isinstance(text, str) or not text:
            return None
        found = self._patterns.get(text)
        if found is None:
            found = self._patterns[text] = Pattern(text)
        return found

    def _items(self, schema: Mapping[str, Any], depth: int) -> ListLimits | None:
        if _LIST_KEYWORDS.isdisjoint(schema):
            return None
        items = schema.get("items")
        limits = ListLimits(
            self._node(items, depth + 1) if isinstance(items, Mapping) else None,
            _count(schema, "maxItems"),
            _count(schema, "minItems"),
            schema.get("uniqueItems") is True,
            self._types_least,
        )
        return None if limits == ListLimits(types_least=self._types_least) else limits

    def _fields(
        self, schema: Mapping[str, Any], depth: int, unchecked: frozenset[str]
    ) -> ObjectLimits | None:
        if _OBJECT_KEYWORDS.isdisjoint(schema):
            return None
        properties = mapping(schema.get("properties"))
        defined = mapping(schema.get(DEFINED_FIELDS)) if self._is_published else properties
        values = schema.get("additionalProperties")
        listed = texts(schema.get("required"))
        # An embedded object requires apiVersion and kind anyway.
        required = [name for name in listed if depth == 0 or name not in unchecked - {"metadata"}]
        limits = ObjectLimits(
            {
                name: self._node(defined.get(name) if name in unchecked else inner, depth + 1)
                for name, inner in properties.items()
            },
            self._node(values, depth + 1) if isinstance(values, Mapping) else None,
            values is False,
            required,
            _count(schema, "maxProperties"),
            _count(schema, "minProperties"),
            self._types_least,
        )
        has_bounds = limits.most is not None or limits.least is not None
        has_fields = bool(limits.properties) or limits.additional is not None or values is False
        return limits if has_bounds or has_fields or required else None

    def _branches(self, schema: Mapping[str, Any], depth: int, *, is_either: bool) -> Branches | None:
        if _BRANCH_KEYWORDS.isdisjoint(schema):
            return None
        any_of, all_of = _list(schema, "anyOf"), _list(schema, "allOf")
        if is_either and any_of == EITHER:
            any_of = []
        elif is_either and all_of and all_of[0] == {"anyOf": EITHER}:
            all_of = all_of[1:]
        forbidden = schema.get("not")
        branches = Branches(
            self._nodes(any_of, depth),
            self._nodes(_list(schema, "oneOf"), depth),
            self._nodes(all_of, depth),
            self._node(forbidden, depth + 1) if isinstance(forbidden, Mapping) else None,
        )
        return None if branches == Branches() else branches

    def _nodes(self, listed: list[Any], depth: int) -> tuple[SchemaNode, ...]:
        return tuple(self._node(each, depth + 1) for each in listed)


def _count(schema: Mapping[str, Any], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _bound(schema: Mapping[str, Any], keyword: str) -> float | None:
    value = schema.get(keyword)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []

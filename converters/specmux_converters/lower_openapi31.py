"""Lowers OpenAPI 3.1 to 3.0, the version that Kubernetes' clients, gnostic's Protobuf and our readers
support.

What 3.0 expresses in another way is rewritten; the rest is removed and reported as a Loss. The input is not
modified. (OpenAPI 3.1.1; its schemas are JSON Schema 2020-12.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument, cut
from specmux_converters.json_values import within
from specmux_converters.lazy.patterns import pattern
from specmux_converters.losses import Grade, Loss, pointer_to, unescape
from specmux_converters.references import LISTS_OF, MAPS_OF, ONE_OF, PREFIX

VERSION: Final = "3.0.3"
_LATER: Final = pattern(r"3\.0*[1-9][0-9]*(?:\..*)?", re.DOTALL)
_SHARED_PATHS: Final = f"{PREFIX}pathItems/"

_GONE: Final[Mapping[str, tuple[str, ...]]] = {
    "document": ("webhooks", "jsonSchemaDialect"),
    "info": ("summary",),
    "license": ("identifier",),
    "components": ("pathItems",),
    "schema": (
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary",
        "contains", "contentEncoding", "contentMediaType", "contentSchema", "dependentRequired",
        "dependentSchemas", "else", "if", "maxContains", "minContains", "patternProperties", "prefixItems",
        "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    ),
}  # fmt: skip
"""Keywords without a counterpart in 3.0, by the type of object that contains them."""

_NOTES: Final = frozenset(
    {"$anchor", "$comment", "$id", "$schema", "identifier", "jsonSchemaDialect", "pathItems", "summary"}
)
"""Keywords that constrain no value, or move to another place."""

_BOUNDS: Final[Mapping[str, tuple[str, Callable[[Any, Any], Any]]]] = {
    "exclusiveMinimum": ("minimum", max),
    "exclusiveMaximum": ("maximum", min),
}


def is_later_than_30(document: Document) -> bool:
    """Whether the version is 3.1, which is lowered, or later, which is then rejected."""
    version = document.get("openapi")
    return isinstance(version, str) and _LATER.fullmatch(version) is not None


def as_openapi_30(document: Document) -> tuple[Document, list[Loss]]:
    """Raises InvalidDocument for OpenAPI 3.2 and later, which is not supported, and for documents nested too
    deeply."""
    version = str(document.get("openapi"))
    if version != "3.1" and not version.startswith("3.1."):
        raise InvalidDocument(f"OpenAPI {cut(version)} is not read: write 3.0 or 3.1")
    lowering = _Lowering(document)
    try:
        made = lowering.object({**document, "openapi": VERSION}, "document", ())
    except RecursionError:
        raise InvalidDocument("nested too deeply") from None
    made.setdefault("paths", {})  # required in 3.0
    return made, lowering.losses


class _Lowering:
    def __init__(self, document: Document) -> None:
        self._shared_paths: Mapping[str, Any] = within(document.get("components"), "pathItems")
        self.losses: list[Loss] = []

    def object(self, node: Any, kind: str, path: tuple[str | int, ...]) -> Any:
        if kind == "schema" and isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, dict):
            return node
        if kind == "path_item":
            node = self._own_path(node)
        one, maps, lists = ONE_OF.get(kind, {}), MAPS_OF.get(kind, {}), LISTS_OF.get(kind, {})
        made: dict[str, Any] = {}
        for key, value in node.items():
            place = (*path, key)
            if key in _GONE.get(kind, ()):
                grade = Grade.NOTE if key in _NOTES else Grade.LOSS
                self._lose(place, key, "OpenAPI 3.0 has no such keyword; left out", grade)
            elif key in maps and isinstance(value, dict):
                inner = maps[key]
                made[key] = {name: self.object(each, inner, (*place, name)) for name, each in value.items()}
            elif key in lists and isinstance(value, list):
                made[key] = [self.object(each, lists[key], (*place, at)) for at, each in enumerate(value)]
            elif key in one or (kind == "callback" and key[:2] != "x-"):
                made[key] = self.object(value, one.get(key, "path_item"), place)
            elif (kind, key) in (("document", "info"), ("info", "license")):
                made[key] = self.object(value, key, place)
            else:
                made[key] = value
        if kind == "operation":
            made.setdefault("responses", {"default": {"description": ""}})  # required in 3.0
        return self._schema(made, path) if kind == "schema" else made

    def _own_path(self, node: dict[str, Any]) -> dict[str, Any]:
        """Merges a shared path item into the node: 3.0 has no shared ones."""
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith(_SHARED_PATHS):
            return node
        shared = self._shared_paths.get(unescape(reference.removeprefix(_SHARED_PATHS)))
        own = {key: value for key, value in node.items() if key != "$ref"}
        return {**shared, **own} if isinstance(shared, dict) else own

    def _schema(self, schema: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        for key, (bound, tighter) in _BOUNDS.items():
            value = schema.get(key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            other = schema.get(bound, value)
            if isinstance(other, int | float) and tighter(other, value) != value:
                del schema[key]  # the sibling keyword is stricter
            else:
                schema |= {bound: value, key: True}
        if "const" in schema:
            value = schema.pop("const")
            schema["enum"] = [value]
        examples = schema.pop("examples", None)
        if isinstance(examples, list) and examples:
            schema.setdefault("example", examples[0])
            if len(examples) > 1:
                self._lose((*path, "examples"), "examples", "all but the first are left out", Grade.NOTE)
        if isinstance(schema.get("type"), list):
            self._lower_types(schema, path)
        elif schema.get("type") == "null":
            del schema["type"]
            schema["enum"] = [None]
        if schema.get("type") == "array":
            schema.setdefault("items", {})
        if "$ref" in schema and len(schema) > 1:
            return {"allOf": [{"$ref": schema.pop("$ref")}, *schema.pop("allOf", ())], **schema}
        return schema

    def _lower_types(self, schema: dict[str, Any], path: tuple[str | int, ...]) -> None:
        types = schema.pop("type")
        named = [each for each in types if each != "null"]
        enum = schema.get("enum")
        takes_null = "null" in types and (not isinstance(enum, list) or None in enum)
        nullable = {"nullable": True} if takes_null else {}  # nullable needs a type (3.0.3, Schema Object)
        if len(named) == 1:
            schema |= {"type": named[0], **nullable}
        elif not named:
            schema["enum"] = [None]
        elif "anyOf" in schema:
            self._lose((*path, "type"), "type", "several types beside anyOf; left out", Grade.LOSS)
        else:
            items = {"items": schema.pop("items", {})} if "array" in named else {}
            schema["anyOf"] = [
                {"type": each, **nullable, **(items if each == "array" else {})} for each in named
            ]

    def _lose(self, path: tuple[str | int, ...], construct: str, reason: str, grade: Grade) -> None:
        self.losses.append(Loss(pointer_to(*path), construct, reason, grade))

"""Bundles for generators of typed models: all kinds of one group-version, with short, stable names.

They describe only types. Whatever makes generators guess is removed: package paths in names, anonymous
objects (each is named after the path of its field), defaults that an apiserver does not apply, alternatives
that express rules. A bundle is draft-07, or OpenAPI 3.0 without paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.errors import LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.forms import DRAFT, Dialect, ModelForm, Schema
from specmux_converters.json_schema.keywords import (
    BY_COMPONENT,
    GO_BASE64,
    META,
    STRFMT_BASE64,
    format_of,
    plain_keywords,
    with_null,
)
from specmux_converters.json_schema.kinds import Kind, kinds_in
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.references import component_of, references, schemas_of
from specmux_converters.short_names import short_names

INT_OR_STRING: Final = "int-or-string"

_PREFIXES: Final[Mapping[Dialect, str]] = {
    "json-schema": "#/definitions/",
    "openapi": "#/components/schemas/",
}
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_MICRO_TIME: Final = f"{META}.MicroTime"
"""Always six digits of a second: for a date, programs would omit zeros, which apiservers refuse."""
_FIELDS: Final = f"{META}.FieldsV1"
"""Any JSON, although its document says object: apimachinery keeps the bytes as they are."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")


def models(
    document: Document,
    key: GroupVersion,
    form: ModelForm,
    is_chosen: Callable[[Kind], bool] = lambda kind: True,
) -> Schema | None:
    """The bundle of a document's kinds; None if there are none.

    Raises LimitExceeded if it is nested too deeply.
    """
    kinds = tuple(kind for kind in kinds_in(document, key) if is_chosen(kind))
    if not kinds:
        return None
    bundle = _Bundle(document, kinds, form)
    try:
        definitions = bundle.definitions()
    except RecursionError:
        raise LimitExceeded(f"nested too deeply: {key}") from None
    group, version = kinds[0].group, kinds[0].version
    title = _word(group.partition(".")[0] or "core") + _word(version)
    if form.dialect == "openapi":
        info = {"title": title, "version": version}
        return {"openapi": "3.0.0", "info": info, "paths": {}, "components": {"schemas": definitions}}
    any_of = [bundle.reference(kind.component) for kind in kinds]
    return {"$schema": DRAFT, "title": title, "anyOf": any_of, "definitions": definitions}


class _Bundle:
    """Components by short name, as far as kinds refer to them."""

    def __init__(self, document: Document, kinds: tuple[Kind, ...], form: ModelForm) -> None:
        self._schemas = schemas_of(document)
        self._is_custom = is_of_custom_resources(document)
        self._dialect = form.dialect
        self._is_partial = form.is_partial
        self._kinds = {kind.component: kind for kind in kinds}
        self._names = short_names(self._schemas, lambda parts: "".join(map(_word, parts)))
        self._taken = set(self._names.values())
        self._waiting = list(reversed(self._kinds))
        self._made: dict[str, Schema] = {}

    def definitions(self) -> dict[str, Schema]:
        begun: set[str] = set()
        while self._waiting:
            component = self._waiting.pop()
            if component not in begun:
                begun.add(component)
                name = self._names[component]
                self._made[name] = self._name_component(component, name)
        return dict(sorted(self._made.items()))

    def reference(self, component: str) -> Schema:
        self._waiting.append(component)
        return {"$ref": _PREFIXES[self._dialect] + self._names[component]}

    def _name_component(self, component: str, name: str) -> Schema:
        written = self._type(self._schemas[component], name)
        kind = self._kinds.get(component)
        if kind is None:
            return written
        properties = dict(written.get("properties", {}))
        for field, value in (("apiVersion", kind.api_version), ("kind", kind.kind)):
            only = {} if self._is_partial else {"enum": [value]}
            properties[field] = {**properties.get(field, {}), "type": "string", **only}
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        return {**written, "type": "object", "properties": properties, GROUP_VERSION_KIND: [gvk]}

    def _schema(self, node: Any, place: str) -> Schema:
        """The schema for a field, an item or a value; an object with fields becomes a definition."""
        if not isinstance(node, dict):
            return {}
        component = component_of(node)
        if component is not None:
            target = self._schemas.get(component)
            if not isinstance(target, dict):
                return {}
            described = {"description": node["description"]} if "description" in node else {}
            if _is_scalar(target):
                written = {**self._type(target, place), **described}
                if component == _MICRO_TIME:
                    written |= {"pattern": BY_COMPONENT[_MICRO_TIME]["pattern"]}
                    written.pop("format", None)
                return described if component == _FIELDS else written
            reference = self.reference(component)
            return {"allOf": [reference], **described} if described else reference
        if not isinstance(node.get("properties"), dict) or not node["properties"]:
            return self._type(node, place)
        name = self._free(place)
        self._made[name] = {}
        self._made[name] = self._type({**node, "nullable": False}, name)
        reference = {"$ref": _PREFIXES[self._dialect] + name}
        return self._nullable(reference) if node.get("nullable") is True else reference

    def _type(self, node: Mapping[str, Any], place: str) -> Schema:
        written = self._keywords(node)
        if node.get("x-kubernetes-int-or-string") is True or node.get("format") == INT_OR_STRING:
            written.pop("pattern", None)
            return {**written, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        is_open = self._is_partial and not self._is_custom
        for key in ("type", "format") if is_open else ("type", "format", "enum"):
            if node.get(key) not in (None, []):
                written[key] = node[key]
        if self._dialect == "json-schema" and written.get("format") == "byte":
            # Generators would decode it to text, which not every value is.
            del written["format"]
            written |= format_of(node, base64=STRFMT_BASE64 if self._is_custom else GO_BASE64)
        if self._is_custom and node.get("default") not in (None, {}):
            written["default"] = node["default"]
        self._add_members(written, node, place)
        if "type" not in written:
            # Beside a type they are rules of a custom resource; alone they list the types.
            for key in _ALTERNATIVES:
                branches = [self._schema(each, place) for each in node.get(key) or ()]
                if branches:
                    written[key] = branches
        return self._nullable(written) if node.get("nullable") is True else written

    def _add_members(self, written: Schema, node: Mapping[str, Any], place: str) -> None:
        properties = node.get("properties")
        if isinstance(properties, dict) and properties:
            fields = {name: self._schema(each, place + _word(name)) for name, each in properties.items()}
            written["properties"] = fields
            required = [name for name in node.get("required") or () if name in fields]
            if required and not self._is_partial:
                written["required"] = required
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), dict):
                written[key] = self._schema(node[key], place)
        if node.get("type") == "object" and not written.keys() & {"properties", "additionalProperties"}:
            written["additionalProperties"] = True

    def _keywords(self, node: Mapping[str, Any]) -> Schema:
        written = plain_keywords(node)
        for key in ("title", "deprecationMessage", "x-kubernetes-pattern"):
            written.pop(key, None)
        for bound in ("minimum", "maximum") if self._dialect == "openapi" else ():
            exclusive = f"exclusive{bound.capitalize()}"
            if exclusive in written:
                written[bound], written[exclusive] = written[exclusive], True
        return written

    def _nullable(self, written: Schema) -> Schema:
        if self._dialect == "json-schema":
            return with_null(written)
        return {"allOf": [written], "nullable": True} if "$ref" in written else {**written, "nullable": True}

    def _free(self, place: str) -> str:
        name, number = place, 2
        while name in self._taken:
            name, number = f"{place}{number}", number + 1
        self._taken.add(name)
        return name


def _is_scalar(schema: Document) -> bool:
    """Whether a component is a value that needs no name: a time, a quantity, anything."""
    return not schema.get("properties") and not references(schema, "schema")


def _word(text: str) -> str:
    """Part of a name: letters and digits, each word capitalized."""
    return "".join(word[:1].upper() + word[1:] for word in _NOT_IN_NAMES.split(text))

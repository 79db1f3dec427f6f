"""Keywords that a schema may have in a definition, and their dependencies (apiextensions,
ValidateCustomResourceDefinitionOpenAPISchema)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.crd.keywords import EMBEDDED_RESOURCE, PRESERVE_UNKNOWN_FIELDS, TYPES
from specmux_converters.crd.nested import JUNCTORS
from specmux_converters.go.text import json_text
from specmux_converters.json_values import array, mapping, text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.definitions.definition_fault import DefinitionFault
from specmux_tools.validation.definitions.internal_version import items_in_memory, write_in_go
from specmux_tools.validation.field_errors import show_value, unsupported
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.rule_faults import BAD_PATH, RULES, rule_faults
from specmux_tools.validation.rules.rule_tree import rule_tree

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"

_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_META_FIELDS: Final = ("metadata", "kind", "apiVersion")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
UNCONVERTED: Final = (*_UNSUPPORTED, PRESERVE_UNKNOWN_FIELDS)
"""A fault in one of these suppresses faults of the structure."""
_IN_SET: Final = "must be atomic as item of a list with x-kubernetes-list-type=set"


@dataclass(frozen=True, slots=True)
class _SchemaNode:
    schema: Mapping[str, Any]
    path: Path
    prefix: str
    is_root: bool = False
    is_in_metadata: bool = False
    no_default: str = ""
    """Why no default may be set; "" if one may."""

    def below(self, schema: Any, *path: str | int) -> _SchemaNode:
        return replace(self, schema=mapping(schema), path=(*self.path, *path), is_root=False)

    def fault(self, text: str, *path: str | int) -> DefinitionFault:
        found = (*self.path, *path)
        return DefinitionFault(found, f"{schema_place(self.prefix, found)}: {text}", self.path)


def keyword_faults(schema: Mapping[str, Any], prefix: str) -> Iterator[DefinitionFault]:
    """Paths lead into the schema; ``prefix`` is its place in texts."""
    yield from _faults(_SchemaNode(schema, (), prefix, is_root=True))


def has_keyword(schema: Any, keys: Collection[str]) -> bool:
    """Whether the schema or a nested one has one of ``keys`` with a value that is not empty."""
    if not isinstance(schema, Mapping):
        return False
    for key in keys:
        value = schema.get(key)
        if value is not None and (key == "default" or value not in ("", [])):
            return True
    named = [schema.get(key) for key in ("properties", "patternProperties", "definitions", "dependencies")]
    inner = [each for fields in named if isinstance(fields, Mapping) for each in fields.values()]
    inner += [schema.get(key) for key in ("items", "additionalProperties", "additionalItems", "not")]
    for key in JUNCTORS:
        inner += array(schema.get(key))
    return any(has_keyword(each, keys) for each in inner)


def structure_fault(schema: Mapping[str, Any]) -> str:
    """Why upstream's NewStructural rejects the schema, in its words; "" if it accepts it."""
    key = next((each for each in _UNSUPPORTED if has_keyword(schema, (each,))), "")
    return f"OpenAPIV3Schema '{key}' is not supported" if key else ""


def schema_place(prefix: str, path: Path) -> str:
    """The path as apiextensions writes it, with property names in brackets."""
    text, is_name = prefix, False
    for part in path:
        text += f"[{part}]" if is_name or isinstance(part, int) else f".{part}"
        is_name = not is_name and part in ("properties", "patternProperties", "definitions", "dependencies")
    return text


def _faults(node: _SchemaNode) -> Iterator[DefinitionFault]:
    yield from _of_keywords(node)
    for inner in _inner(node):
        yield from _faults(inner)
    if node.schema.get(PRESERVE_UNKNOWN_FIELDS) is False:
        yield node.fault("Invalid value: false: must be true or undefined", PRESERVE_UNKNOWN_FIELDS)
    yield from _of_map_type(node)
    yield from _of_list_type(node)
    if node.schema.get(RULES):
        yield from _of_rules(node)


def _inner(node: _SchemaNode) -> Iterator[_SchemaNode]:
    schema = node.schema
    if isinstance(schema.get("additionalProperties"), Mapping):
        inner = node.below(schema["additionalProperties"], "additionalProperties")
        reason = "inside additionalProperties applying to object metadata"
        yield replace(inner, no_default=reason) if node.is_in_metadata else inner
    for name, property_schema in mapping(node.schema.get("properties")).items():
        inner = node.below(property_schema, "properties", name)
        if (node.is_root or schema.get(EMBEDDED_RESOURCE) is True) and name in _META_FIELDS:
            reason = f"in top-level {name}" if node.is_root else node.no_default
            inner = replace(inner, is_in_metadata=True, no_default=reason)
        yield inner
    if mapping(node.schema.get("not")):
        yield node.below(schema["not"], "not")
    for key in JUNCTORS:
        for index, clause in enumerate(array(schema.get(key))):
            yield node.below(clause, key, index)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield node.below(items, "items")
    for index, item in enumerate(array(items)):
        yield node.below(item, "items", index)
    for key in ("definitions", "dependencies"):
        for name, inner_schema in mapping(node.schema.get(key)).items():
            if isinstance(inner_schema, Mapping):
                yield node.below(inner_schema, key, name)


def _of_keywords(node: _SchemaNode) -> Iterator[DefinitionFault]:
    schema = node.schema
    kind = schema.get("type")
    if kind and kind not in [*TYPES]:  # an undecoded manifest may contain anything
        text = unsupported(kind, sorted(TYPES))
        yield node.fault(text, "type")
    if schema.get("default") is not None and node.no_default:
        yield node.fault(f"Forbidden: must not be set {node.no_default}", "default")
    for key in _UNSUPPORTED:
        if schema.get(key) not in (None, "", {}) or (key == "$ref" and schema.get(key) == ""):
            yield node.fault(f"Forbidden: {key} is not supported", key)
    if kind == "null":
        words = "Forbidden: type cannot be set to null, use nullable as an alternative"
        yield node.fault(words, "type")
    items = schema.get("items")
    if isinstance(items, list) and items:
        yield node.fault("Forbidden: items must be a schema object and not an array", "items")
    if node.is_in_metadata and schema.get(EMBEDDED_RESOURCE) is True:
        yield node.fault("Forbidden: must not be used inside of resource meta", EMBEDDED_RESOURCE)
    if schema.get("uniqueItems") is True:
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield node.fault(f"Forbidden: {words}", "uniqueItems")
    if mapping(node.schema.get("properties")) and schema.get("additionalProperties") not in (None, True):
        words = "Forbidden: additionalProperties and properties are mutual exclusive"
        yield node.fault(words, "additionalProperties")


def _of_map_type(node: _SchemaNode) -> Iterator[DefinitionFault]:
    map_type, kind = node.schema.get(MAP_TYPE), node.schema.get("type")
    if map_type is None:
        return
    if kind != "object":
        yield node.fault(f"{_wrong(kind)}: must be object if {MAP_TYPE} is specified", "type")
    if map_type not in _MAP_TYPES:
        yield node.fault(unsupported(map_type, _MAP_TYPES), MAP_TYPE)


def _of_list_type(node: _SchemaNode) -> Iterator[DefinitionFault]:
    list_type, kind = node.schema.get(LIST_TYPE), node.schema.get("type")
    items = node.schema.get("items")
    item = items if isinstance(items, Mapping) else None
    if list_type is not None and kind != "array":
        yield node.fault(f"{_wrong(kind)}: must be array if {LIST_TYPE} is specified", "type")
    elif list_type == "set" and item is not None:
        if item.get("type") == "array" and item.get(LIST_TYPE) not in (None, "atomic"):
            fault = f"Invalid value: {json_text(item[LIST_TYPE])}: {_IN_SET}"
            yield node.fault(fault, "items", LIST_TYPE)
        if item.get("type") == "object" and item.get(MAP_TYPE) != "atomic":
            fault = f"Invalid value: {json_text(item.get(LIST_TYPE))}: {_IN_SET}"
            yield node.fault(fault, "items", MAP_TYPE)
    if list_type is not None and list_type not in _LIST_TYPES:
        fault = unsupported(list_type, _LIST_TYPES)
        yield node.fault(fault, LIST_TYPE)
    keys = [text(each) for each in array(node.schema.get(LIST_KEYS))]
    if keys and list_type != "map":
        wrong = "Required value" if list_type is None else f"Invalid value: {show_value(list_type)}"
        yield node.fault(f"{wrong}: must be map if {LIST_KEYS} is non-empty", LIST_TYPE)
    if list_type == "map":
        yield from _of_map(node, item, keys)
    if list_type in ("map", "set") and item is not None:
        if item.get("nullable") is True:
            fault = f"Forbidden: cannot be nullable when {LIST_TYPE} is {list_type}"
            yield node.fault(fault, "items", "nullable")
        if list_type == "map":
            yield from _of_keys(node.below(item, "items"), keys)


def _of_map(node: _SchemaNode, item: Mapping[str, Any] | None, keys: list[str]) -> Iterator[DefinitionFault]:
    if not keys:
        yield node.fault(f"Required value: must not be empty if {LIST_TYPE} is map", LIST_KEYS)
    if item is None:
        held = items_in_memory(node.schema.get("items"))
        if held is None:
            yield node.fault(f"Required value: must have a schema if {LIST_TYPE} is map", "items")
        else:
            words = f"must only have a single schema if {LIST_TYPE} is map"
            yield node.fault(f"Invalid value: {write_in_go(held)}: {words}", "items")
        return
    if item.get("type") != "object":
        wrong = f"Invalid value: {show_value(item.get('type') or '')}"
        text = f"{wrong}: must be object if parent array's {LIST_TYPE} is map"
        yield node.fault(text, "items", "type")
        return
    properties = mapping(item.get("properties"))
    for index, key in enumerate(keys):
        if key not in properties:
            words = "entries must all be names of item properties"
            yield node.fault(f"Invalid value: {show_value(keys)}: {words}", LIST_KEYS)
        elif isinstance(properties[key], Mapping) and properties[key].get("type") in ("array", "object"):
            words = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield node.fault(f'Invalid value: "object": {words}', "items", "properties", key, "type")
        if key in keys[:index]:
            yield node.fault(
                f"Invalid value: {show_value(keys)}: must not contain duplicate entries", LIST_KEYS
            )


def _of_keys(item: _SchemaNode, keys: list[str]) -> Iterator[DefinitionFault]:
    """Every item must have the keys, or the keys must have defaults."""
    words = f"this property is in {LIST_KEYS}, so it"
    required = item.schema.get("required")
    properties = mapping(item.schema.get("properties"))
    for key in keys:
        inner = properties.get(key)
        if not isinstance(inner, Mapping):
            continue
        if key not in array(required) and inner.get("default") is None:
            text = f"Required value: {words} must have a default or be a required property"
            yield item.fault(text, "properties", key, "default")
        if inner.get("nullable") is True:
            yield item.fault(f"Forbidden: {words} cannot be nullable", "properties", key, "nullable")


def _of_rules(node: _SchemaNode) -> Iterator[DefinitionFault]:
    tree = rule_tree(node.schema, {}, depth=0 if node.is_root else 1)
    for index, rule in enumerate(tree.rules):
        for key, words in rule_faults(rule, tree):
            if words.endswith(BAD_PATH) and has_keyword(node.schema, _UNSUPPORTED):
                continue  # upstream has no structure here to follow the path in
            yield node.fault(words, RULES, index, key)


def _wrong(kind: Any) -> str:
    return f"Invalid value: {show_value(kind)}" if kind else "Required value"

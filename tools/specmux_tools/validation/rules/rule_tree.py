"""The rules of a schema, compiled into a tree with what CEL is to know of each value. ``fieldPath`` of a rule
names a place in it (apiextensions, pkg/apiserver/schema/cel/validation.go)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from specmux_converters.crd.keywords import DEFINED_FIELDS
from specmux_converters.json_values import array, mapping, objects, text, texts
from specmux_converters.references import resolve_schema
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.cel.parsing.syntax import RESERVED
from specmux_tools.validation.schema.structural import LIST_TYPE, MAP_KEYS, MOST_DEPTH

_RULES: Final = "x-kubernetes-validations"
MOST_NAME: Final = 253
"""Characters of a DNS subdomain."""
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_ESCAPE: Final = re.compile("__[^_]+__")
_UNESCAPES: Final = {escape: name for name, escape in _ESCAPES.items()}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PART: Final = re.compile(r"'(?:[^']|(?<=\\)')*'|[.\[\]]|[^.\[\]']++[^.\[\]]*+")
_ESCAPED_CHARACTER: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_CHARACTERS: Final = dict(zip("abfnrtv'\\", "\a\b\f\n\r\t\v'\\", strict=True))


@dataclass(frozen=True, slots=True)
class ValidationRule:
    text: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old: bool | None = None

    @property
    def shown(self) -> str:
        """In messages of errors."""
        return self.message.strip() if self.message else self.text.strip()

    @property
    def default_message(self) -> str:
        return self.message.strip() if self.message else f"failed rule: {self.text.strip()}"


@dataclass(eq=False)
class RuleNode:
    """The part of a schema that rules need. Only what leads to a rule has ``has_rules``."""

    kind: str
    form: str = ""
    rules: tuple[ValidationRule, ...] = ()
    properties: dict[str, RuleNode] = field(default_factory=dict)
    additional: RuleNode | None = None
    says_additional: bool = False
    """With a schema, or as true or false."""
    items: RuleNode | None = None
    nested: tuple[RuleNode, ...] = ()
    """The schemas of allOf."""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str | None = None
    is_nullable: bool = False
    is_int_or_string: bool = False
    is_resource: bool = False
    """The root of a resource, or one that is embedded: it has metadata."""
    preserves: bool = False
    most_length: int | None = None
    most_items: int | None = None
    most_properties: int | None = None
    required: frozenset[str] = frozenset()
    choices: tuple[Any, ...] = ()
    has_default: bool = False
    is_name: bool = False
    """Whether it is the name of a resource, which releases before 1.37 took to be of any length."""
    has_rules: bool = False

    @cached_property
    def fields(self) -> dict[str, RuleNode]:
        """Properties, with those that every resource has."""
        if not self.is_resource:
            return self.properties
        return {**self.properties, **_resource_fields(self.properties)}

    @property
    def is_correlated(self) -> bool:
        """Whether properties have an older value: of a type of map that is not known they have none."""
        return self.map_type in (None, "atomic", "granular")

    @cached_property
    def names(self) -> dict[str, str]:
        """Names of fields, by the name in CEL; fields that it cannot name are not there."""
        return {escaped: name for name in self.fields if (escaped := escaped_name(name)) is not None}


def rule_tree(schema: Any, schemas: Mapping[str, Any], depth: int = 0) -> RuleNode:
    """The tree of a schema, published or defined; ``schemas`` are the components that it refers to."""
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return RuleNode("")
    schema = resolve_schema(schemas, schema)
    properties = mapping(schema["properties"]) if "properties" in schema else {}
    if DEFINED_FIELDS in schema:
        properties = {**properties, **mapping(schema[DEFINED_FIELDS])}
    values, items = schema.get("additionalProperties"), schema.get("items")
    is_resource = depth == 0 or schema.get("x-kubernetes-embedded-resource") is True
    node = RuleNode(
        kind=text(schema.get("type")),
        form=text(schema["format"]) if "format" in schema else "",
        rules=tuple(map(_rule, objects(schema[_RULES]))) if _RULES in schema else (),
        properties={
            name: RuleNode("object")
            if is_resource and name == "metadata" and not _names_itself(inner)
            else rule_tree(inner, schemas, depth + 1)
            for name, inner in properties.items()
        },
        additional=rule_tree(values, schemas, depth + 1) if isinstance(values, Mapping) else None,
        says_additional=values is not None,
        items=rule_tree(items, schemas, depth + 1) if isinstance(items, Mapping) else None,
        nested=tuple(rule_tree(each, schemas, depth + 1) for each in objects(schema["allOf"]))
        if "allOf" in schema
        else (),
        list_type=text(schema[LIST_TYPE]) if LIST_TYPE in schema else "",
        list_keys=texts(schema[MAP_KEYS]) if MAP_KEYS in schema else (),
        map_type=schema.get("x-kubernetes-map-type"),
        is_nullable=schema.get("nullable") is True,
        is_int_or_string=schema.get("x-kubernetes-int-or-string") is True,
        is_resource=is_resource,
        preserves=schema.get("x-kubernetes-preserve-unknown-fields") is True,
        most_length=_count(schema.get("maxLength")),
        most_items=_count(schema.get("maxItems")),
        most_properties=_count(schema.get("maxProperties")),
        required=frozenset(texts(schema["required"])) if "required" in schema else frozenset(),
        choices=tuple(array(schema["enum"])) if "enum" in schema else (),
        has_default=schema.get("default") is not None,
    )
    node.has_rules = bool(node.rules) or any(each.has_rules for each in _below(node))
    return node


def reads_metadata(root: RuleNode) -> bool:
    """Whether a rule of the whole object, or its message, may look at metadata."""
    texts = (text for rule in root.rules for text in (rule.text, rule.message_expression))
    return any("metadata" in text for text in texts) or any(map(reads_metadata, root.nested))


def _below(node: RuleNode) -> list[RuleNode]:
    inner = [each for each in (node.additional, node.items) if each is not None]
    return [*node.properties.values(), *node.nested, *inner]


def _names_itself(metadata: Any) -> bool:
    """A definition may say more of the names; what is published refers to ObjectMeta."""
    return isinstance(metadata, Mapping) and isinstance(metadata.get("properties"), Mapping)


def _resource_fields(properties: Mapping[str, RuleNode]) -> dict[str, RuleNode]:
    """The fields to add; none to a schema that has all of them."""
    metadata = properties.get("metadata")
    named = metadata is not None and all(
        name in metadata.properties and metadata.properties[name].kind == "string"
        for name in ("name", "generateName")
    )
    texts = all(name in properties and properties[name].kind == "string" for name in ("apiVersion", "kind"))
    if named and texts:
        return {}
    said = {} if metadata is None else metadata.properties
    names = {
        name: RuleNode("string", most_length=_least(most, said.get(name)), is_name=True)
        for name, most in (("name", MOST_NAME), ("generateName", MOST_NAME - 1))
    }
    return {
        "kind": RuleNode("string"),
        "apiVersion": RuleNode("string"),
        "metadata": RuleNode("object", properties=names),
    }


def _least(most: int, said: RuleNode | None) -> int:
    return most if said is None or said.most_length is None else min(most, said.most_length)


def escaped_name(name: str) -> str | None:
    """The name of a field in CEL; None for one that it cannot have."""
    if name in RESERVED:
        return f"__{name}__"
    escaped = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
    return escaped if _IDENTIFIER.fullmatch(escaped) else None


def unescaped_name(key: str) -> str | None:
    """The field that a key looks up; None where an escape is none."""
    if key[2:-2] in RESERVED and key == f"__{key[2:-2]}__":
        return key[2:-2]
    if any(found not in _UNESCAPES for found in _ESCAPE.findall(key)):
        return None
    return _ESCAPE.sub(lambda found: _UNESCAPES[found[0]], key)


def _rule(value: Mapping[str, Any]) -> ValidationRule:
    return ValidationRule(
        text=text(value.get("rule")),
        message=text(value.get("message")),
        message_expression=text(value.get("messageExpression")),
        reason=text(value.get("reason")),
        field_path=text(value.get("fieldPath")),
        optional_old=found if isinstance(found := value.get("optionalOldSelf"), bool) else None,
    )


def _count(value: Any) -> int | None:
    return max(int(value), 0) if isinstance(value, int | float) and not isinstance(value, bool) else None


class BadFieldPath(Exception):
    """In an apiserver's words."""


def follow_field_path(text: str, node: RuleNode, *, takes_keys: bool = True) -> tuple[Path, str, RuleNode]:
    """The names in it, how messages show them, and what they lead to. ``takes_keys``: names may stand in
    brackets. Raises BadFieldPath."""
    found: list[str] = []
    shown = ""
    parts = (match.group() for match in _PART.finditer(text))
    for part in parts:
        if part == "[":
            if not takes_keys:
                raise BadFieldPath("array notation is not allowed")
            quoted = _next(parts)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise BadFieldPath(f"expected single quoted string but got {quoted}")
            name = _unescape(quoted[1:-1])
            is_field, node = _step(node, name)
            if (closing := _next(parts)) != "]":
                raise BadFieldPath(f"expected ] but got {closing}")
        elif part == ".":
            name = _next(parts)
            is_field, node = _step(node, name)
        else:
            raise BadFieldPath(f"expected [ or . but got: {part}")
        found.append(name)
        shown += f".{name}" if is_field else f"[{name}]"
    return tuple(found), shown.removeprefix("."), node


def _next(parts: Iterator[str]) -> str:
    part = next(parts, None)
    if part is None:
        raise BadFieldPath("unexpected end of JSON path")
    return part


def _step(node: RuleNode, name: str) -> tuple[bool, RuleNode]:
    """Whether it is a field, and what is there."""
    found = node.properties.get(name) if node.properties else node.additional
    if found is None:
        raise BadFieldPath("does not refer to a valid field")
    return bool(node.properties), found


def _unescape(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPED_CHARACTERS:
            raise BadFieldPath(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPED_CHARACTERS[found[1]]

    return _ESCAPED_CHARACTER.sub(character, text)

"""The rules of a schema, compiled into a tree in which only what leads to a rule has a place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from specmux_schemas.references import resolved
from specmux_schemas.validation.decoding.structural import MOST_DEPTH

_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
"""Words of CEL that no field may be called by (apiserver, pkg/cel/escaping.go)."""
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPED_FORMATS: Final = frozenset(("date-time", "date", "duration", "byte"))
_OLD: Final = re.compile(r"\boldSelf\b")
_MACRO: Final = re.compile(r"\.(?:all|exists|exists_one|map|filter)\($")
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')


@dataclass(frozen=True, slots=True)
class ValidationRule:
    text: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    takes_missing_old: bool = False
    uses_old: bool = False
    nesting: int = 0
    """Loops in each other: what it costs grows with this power of the value's size."""

    @property
    def default_message(self) -> str:
        return self.message.strip() or f"failed rule: {self.text.strip()}"


@dataclass(slots=True, eq=False)
class RuleNode:
    """``names`` are fields that CEL knows by another name."""

    kind: str
    form: str = ""
    """The format of a text that CEL knows as another type: date-time, date, duration, byte."""
    rules: tuple[ValidationRule, ...] = ()
    properties: dict[str, RuleNode] = field(default_factory=dict)
    additional: RuleNode | None = None
    items: RuleNode | None = None
    nested: tuple[RuleNode, ...] = ()
    """Of allOf."""
    list_keys: tuple[str, ...] | None = None
    """Of a list that is a map: how its items are told apart in an older object."""
    names: dict[str, str] = field(default_factory=dict)
    has_rules: bool = False


def rule_tree(schema: Any, schemas: Mapping[str, Any], depth: int = 0) -> RuleNode:
    """Of a schema as it is published; ``schemas`` are the components that it refers to."""
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return RuleNode("")
    schema = resolved(schemas, schema)
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    values, items = schema.get("additionalProperties"), schema.get("items")
    node = RuleNode(
        kind=str(schema.get("type", "")),
        form=_form(schema),
        rules=tuple(_rule(each) for each in _objects(schema.get("x-kubernetes-validations"))),
        properties={name: rule_tree(inner, schemas, depth + 1) for name, inner in properties.items()},
        additional=rule_tree(values, schemas, depth + 1) if isinstance(values, Mapping) else None,
        items=rule_tree(items, schemas, depth + 1) if isinstance(items, Mapping) else None,
        nested=tuple(rule_tree(each, schemas, depth + 1) for each in _objects(schema.get("allOf"))),
        list_keys=_keys(schema),
        names={name: escaped for name in properties if (escaped := escaped_name(name)) != name},
    )
    below = [
        *node.properties.values(),
        *node.nested,
        *(each for each in (node.additional, node.items) if each),
    ]
    node.has_rules = bool(node.rules) or any(each.has_rules for each in below)
    return node


def _form(schema: Mapping[str, Any]) -> str:
    form = str(schema.get("format", "")).replace("datetime", "date-time")
    return form if schema.get("type") == "string" and form in _TYPED_FORMATS else ""


def escaped_name(name: str) -> str:
    """As CEL knows a field; a name that it cannot know stays."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = name
    for mark, escape in _ESCAPES:
        escaped = escaped.replace(mark, escape)
    return escaped if _IDENTIFIER.fullmatch(escaped) else name


def _rule(value: Mapping[str, Any]) -> ValidationRule:
    text = _text(value, "rule")
    expression = _text(value, "messageExpression")
    return ValidationRule(
        text=text,
        message=_text(value, "message"),
        message_expression=expression,
        reason=_text(value, "reason"),
        field_path=_text(value, "fieldPath"),
        takes_missing_old=value.get("optionalOldSelf") is True,
        uses_old=bool(_OLD.search(text)),
        nesting=max(_nesting(text), _nesting(expression)),
    )


def _nesting(text: str) -> int:
    """How deep loops lie in each other, by the parentheses behind their names."""
    text = _TEXT.sub("''", text)
    loops: list[bool] = []
    deepest = 0
    for index, character in enumerate(text):
        if character == "(":
            loops.append(bool(_MACRO.search(text, max(0, index - 12), index + 1)))
            deepest = max(deepest, sum(loops))
        elif character == ")" and loops:
            loops.pop()
    return deepest


def _keys(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(keys, list):
        return None
    return tuple(key for key in keys if isinstance(key, str))


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []

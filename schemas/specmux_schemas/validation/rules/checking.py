"""Evaluates the rules of a schema on an object (apiextensions, pkg/apiserver/schema/cel/validation.go).

A rule that cannot be evaluated is told as not checked: it may use what the library does not know, or cost too
much. CEL has no loops but those over what is there, so the cost is bounded before a rule runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from specmux_schemas.validation.metadata.field_errors import field_path
from specmux_schemas.validation.report import Check, Path, Severity, Violation
from specmux_schemas.validation.rules.declared import RuleNode, ValidationRule
from specmux_schemas.validation.rules.evaluation import Evaluation, NotEvaluated, RuleError
from specmux_schemas.validation.schema.ratcheting import Correlation, Standing

MOST_STEPS: Final = 1_000_000
"""Of one rule: values in the object, to the power of its nested loops."""

MISSING: Final[Any] = object()
"""There is no older value."""

_FIELD: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)*)'\]")


def check_rules(
    value: Any,
    node: RuleNode,
    evaluation: Evaluation | None,
    old: Any = MISSING,
    correlation: Correlation | None = None,
) -> list[Violation]:
    """``evaluation`` is None where the library for CEL is not installed. With ``correlation`` what a rule
    finds in unchanged values is a warning."""
    if not node.has_rules:
        return []
    if evaluation is None:
        reason = 'rules (x-kubernetes-validations) are not checked: install "specmux[cel]"'
        return [Violation(Severity.NOTE, Check.NOT_CHECKED, (), reason)]
    return list(_Walk(evaluation).node(value, old, node, _Place((), "", Standing(correlation))))


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    text: str
    """As messages call it."""
    standing: Standing

    def field(self, name: str) -> _Place:
        text = f"{self.text}.{name}" if self.text else name
        return _Place((*self.path, name), text, self.standing.child(name))

    def key(self, name: str) -> _Place:
        return _Place((*self.path, name), f"{self.text}[{name}]", self.standing.child(name))

    def item(self, index: int) -> _Place:
        return _Place((*self.path, index), f"{self.text}[{index}]", self.standing.child(index))

    def nested(self) -> _Place:
        return replace(self, standing=self.standing.nested())


class _Walk:
    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def node(self, value: Any, old: Any, node: RuleNode, place: _Place) -> Iterator[Violation]:
        if value is None or not node.has_rules:
            return
        if node.rules:
            yield from self._rules(value, old, node, place)
        for each in node.nested:
            yield from self.node(value, old, each, place.nested())
        if isinstance(value, dict):
            yield from self._fields(value, old, node, place)
        elif isinstance(value, list) and node.items is not None:
            for index, item in enumerate(value):
                older = _older_item(item, old, node.list_keys)
                yield from self.node(item, older, node.items, place.item(index))

    def _fields(
        self, value: Mapping[str, Any], old: Any, node: RuleNode, place: _Place
    ) -> Iterator[Violation]:
        for key, item in value.items():
            older = old.get(key, MISSING) if isinstance(old, dict) else MISSING
            inner = node.properties.get(key)
            if inner is not None:
                yield from self.node(item, older, inner, place.field(key))
            elif node.additional is not None:
                yield from self.node(item, older, node.additional, place.key(key))

    def _rules(self, value: Any, old: Any, node: RuleNode, place: _Place) -> Iterator[Violation]:
        size = None
        is_new = old is MISSING or old is None
        for rule in node.rules:
            if not rule.text.strip() or (is_new and rule.uses_old and not rule.takes_missing_old):
                continue
            if rule.nesting > 1:
                size = _size(value) if size is None else size
                if size**rule.nesting > MOST_STEPS:
                    yield _not_checked(rule, place.path, f"it may take more than {MOST_STEPS} steps")
                    continue
            found = self._rule(rule, value, old, node, place)
            if found is not None:
                yield found

    def _rule(
        self, rule: ValidationRule, value: Any, old: Any, node: RuleNode, place: _Place
    ) -> Violation | None:
        variables = self._evaluation.variables(
            value, None if old is MISSING else old, node, rule.takes_missing_old
        )
        try:
            _want_kind(value, node)
            if rule.uses_old and old is not MISSING and old is not None:
                _want_kind(old, node)
            if self._evaluation.holds(rule.text, variables):
                return None
            message = self._message(rule, variables)
        except RuleError as error:
            shown = rule.message.strip() or rule.text.strip()
            text = f'{place.text or "<nil>"}: Invalid value: "{node.kind}": {error} evaluating rule: {shown}'
            return Violation(Severity.ERROR, Check.RULE, place.path, text)
        except NotEvaluated as error:
            return _not_checked(rule, place.path, str(error))
        full, shown_place = _with_field(place.path, place.text, rule.field_path)
        is_left = not rule.uses_old and place.standing.is_unchanged
        severity = Severity.WARNING if is_left else Severity.ERROR
        return Violation(severity, Check.RULE, full, _error(shown_place, node.kind, rule.reason, message))

    def _message(self, rule: ValidationRule, variables: Mapping[str, Any]) -> str:
        if rule.message_expression:
            try:
                message = self._evaluation.text(rule.message_expression, variables)
            except (RuleError, NotEvaluated):
                message = ""
            if message.strip() and "\n" not in message.strip():
                return message
        return rule.default_message


def _want_kind(value: Any, node: RuleNode) -> None:
    """Raises RuleError for a value that is not of its type, which a schema with a format lets pass, in the
    words of pkg/cel/common/values.go."""
    wanted = _KINDS.get(node.kind)
    if wanted is None:
        return
    kind = float if isinstance(value, float) else dict if isinstance(value, dict) else type(value)
    if kind in wanted[0]:
        return
    told = f", got {_GO_KINDS.get(kind, kind.__name__)}" if node.kind not in ("object", "array") else ""
    raise RuleError(f"invalid data, expected {wanted[1]}{told}")


_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "object": ((dict,), "a map for the provided schema with type=object"),
    "array": ((list,), "an array for the provided schema with type=array"),
    "string": ((str,), "string"),
    "integer": ((int,), "int"),
    "number": ((int, float), "float"),
    "boolean": ((bool,), "bool"),
}
_GO_KINDS: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _error(place: str, kind: str, reason: str, message: str) -> str:
    place = place or "<nil>"
    match reason:
        case "FieldValueForbidden":
            return f"{place}: Forbidden: {message}"
        case "FieldValueRequired":
            return f"{place}: Required value: {message}"
        case "FieldValueDuplicate":
            return f'{place}: Duplicate value: "{kind}"'
    return f'{place}: Invalid value: "{kind}": {message}'


def _with_field(path: Path, place: str, field: str) -> tuple[Path, str]:
    """The place that a rule names below its own."""
    names = tuple(plain or re.sub(r"\\(.)", r"\1", quoted) for plain, quoted in _FIELD.findall(field))
    if not names:
        return path, place
    below = field_path(names)
    return (*path, *names), f"{place}.{below}" if place else below


def _not_checked(rule: ValidationRule, path: Path, reason: str) -> Violation:
    text = f"the rule {rule.text.strip()!r} is not checked: {reason}"
    return Violation(Severity.NOTE, Check.NOT_CHECKED, path, text)


def _older_item(item: Any, old: Any, keys: tuple[str, ...] | None) -> Any:
    """The item of an older list with the same keys; there is none where a list is no map."""
    if keys is None or not isinstance(old, list) or not isinstance(item, dict):
        return MISSING
    wanted = [item.get(key) for key in keys]
    found = (each for each in old if isinstance(each, dict) and [each.get(key) for key in keys] == wanted)
    return next(found, MISSING)


def _size(value: Any) -> int:
    """Values in it, itself included."""
    waiting, count = [value], 0
    while waiting:
        each = waiting.pop()
        count += 1
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return count

"""Evaluates the rules of a schema on an object (apiextensions, pkg/apiserver/schema/cel/validation.go).

A rule that cannot be evaluated is told as not checked: it may use what the library does not know, or cost too
much. CEL has no loops but those over what is there, so the cost is bounded before a rule runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_schemas.validation.field_errors import field_path
from specmux_schemas.validation.report import Check, Path, Severity, Violation
from specmux_schemas.validation.rules.declared import Rule, RuleNode
from specmux_schemas.validation.rules.evaluation import Evaluation, NotEvaluated, RuleError

MOST_STEPS: Final = 1_000_000
"""Of one rule: values in the object, to the power of its nested loops."""

MISSING: Final[Any] = object()
"""There is no older value."""

BLOCKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_FIELD: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)*)'\]")


def check_rules(
    value: Any, node: RuleNode, evaluation: Evaluation | None, old: Any = MISSING
) -> list[Violation]:
    """``evaluation`` is None where the library for CEL is not installed."""
    if not node.has_rules:
        return []
    if evaluation is None:
        reason = 'rules (x-kubernetes-validations) are not checked: install "specmux[cel]"'
        return [Violation(Severity.NOTE, Check.NOT_CHECKED, (), reason)]
    return list(_Walk(evaluation).node(value, old, node, (), ""))


class _Walk:
    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def node(self, value: Any, old: Any, node: RuleNode, path: Path, place: str) -> Iterator[Violation]:
        if value is None or not node.has_rules:
            return
        if node.rules:
            yield from self._rules(value, old, node, path, place)
        for each in node.nested:
            yield from self.node(value, old, each, path, place)
        if isinstance(value, dict):
            yield from self._fields(value, old, node, path, place)
        elif isinstance(value, list) and node.items is not None:
            for index, item in enumerate(value):
                older = _older_item(item, old, node.list_keys)
                yield from self.node(item, older, node.items, (*path, index), f"{place}[{index}]")

    def _fields(
        self, value: Mapping[str, Any], old: Any, node: RuleNode, path: Path, place: str
    ) -> Iterator[Violation]:
        for key, item in value.items():
            older = old.get(key, MISSING) if isinstance(old, dict) else MISSING
            inner = node.properties.get(key)
            if inner is not None:
                yield from self.node(item, older, inner, (*path, key), f"{place}.{key}" if place else key)
            elif node.additional is not None:
                yield from self.node(item, older, node.additional, (*path, key), f"{place}[{key}]")

    def _rules(self, value: Any, old: Any, node: RuleNode, path: Path, place: str) -> Iterator[Violation]:
        size = None
        is_new = old is MISSING or old is None
        for rule in node.rules:
            if not rule.text.strip() or (is_new and rule.uses_old and not rule.takes_missing_old):
                continue
            if rule.nesting > 1:
                size = _size(value) if size is None else size
                if size**rule.nesting > MOST_STEPS:
                    yield _not_checked(rule, path, f"it may take more than {MOST_STEPS} steps")
                    continue
            found = self._rule(rule, value, old, node, path, place)
            if found is not None:
                yield found

    def _rule(
        self, rule: Rule, value: Any, old: Any, node: RuleNode, path: Path, place: str
    ) -> Violation | None:
        variables = self._evaluation.variables(
            value, None if old is MISSING else old, node, rule.takes_missing_old
        )
        try:
            if self._evaluation.holds(rule.text, variables):
                return None
            message = self._message(rule, variables)
        except RuleError as error:
            shown = rule.message.strip() or rule.text.strip()
            text = f'{place or "<nil>"}: Invalid value: "{node.kind}": {error} evaluating rule: {shown}'
            return Violation(Severity.ERROR, Check.RULE, path, text)
        except NotEvaluated as error:
            return _not_checked(rule, path, str(error))
        full, shown_place = _with_field(path, place, rule.field_path)
        return Violation(
            Severity.ERROR, Check.RULE, full, _error(shown_place, node.kind, rule.reason, message)
        )

    def _message(self, rule: Rule, variables: Mapping[str, Any]) -> str:
        if rule.message_expression:
            try:
                message = self._evaluation.text(rule.message_expression, variables)
            except (RuleError, NotEvaluated):
                message = ""
            if message.strip() and "\n" not in message.strip():
                return message
        return rule.default_message


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


def _not_checked(rule: Rule, path: Path, reason: str) -> Violation:
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

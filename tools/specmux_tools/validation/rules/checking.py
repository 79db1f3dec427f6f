"""Evaluates the rules of a schema on an object (apiextensions, pkg/apiserver/schema/cel/validation.go).

Cost bounds it, as in an apiserver: of one expression, and of all rules of an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.field_errors import show_value
from specmux_tools.validation.report import Check, Path, Severity, Violation
from specmux_tools.validation.rules.cel.costs.metering import OBJECT_BUDGET, PER_CALL_LIMIT
from specmux_tools.validation.rules.cel.values.values import (
    NONE,
    CelError,
    CostExceeded,
    Optional,
    UndecidedRule,
)
from specmux_tools.validation.rules.compiled_rule import (
    NOT_INSTANTIATED,
    OLD_SELF,
    SELF,
    UNTYPED,
    CompiledRule,
    RuleCompiler,
)
from specmux_tools.validation.rules.data import converter
from specmux_tools.validation.rules.rule_tree import RuleNode
from specmux_tools.validation.schema.ratcheting import Correlation, Standing

MISSING: Final[Any] = object()
"""There is no older value."""
MOST_MESSAGE: Final = 5 * 1024
"""Bytes of what a messageExpression gives."""
_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_TOO_COSTLY: Final = "no further validation rules will be run due to call cost exceeds limit for"


def check_rules(
    value: Any,
    node: RuleNode,
    compiler: RuleCompiler,
    old: Any = MISSING,
    correlation: Correlation | None = None,
    *,
    place: str = "",
) -> list[Violation]:
    """With ``correlation`` what a rule finds in unchanged values is a warning. ``place`` is that of a
    default in its definition, "" for an object: of a default, rules that do not compile are errors."""
    if not node.has_rules:
        return []
    walk = _Walk(compiler, is_default=place != "")
    with suppress(_BudgetSpent):
        walk.node(value, old, node, node, _Place((), place, Standing(correlation)))
    return walk.found


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    text: str
    """The path in messages."""
    standing: Standing

    def field(self, name: str) -> _Place:
        text = f"{self.text}.{name}" if self.text else name
        return _Place((*self.path, name), text, self.standing.child(name))

    def key(self, name: str) -> _Place:
        return _Place((*self.path, name), f"{self.text}[{name}]", self.standing.child(name))

    def item(self, index: int) -> _Place:
        return _Place((*self.path, index), f"{self.text}[{index}]", self.standing.child(index))

    def nest(self) -> _Place:
        return replace(self, standing=self.standing.nest())

    @property
    def shown(self) -> str:
        return self.text or "<nil>"


class _BudgetSpent(Exception):
    """No further rule is evaluated."""


class _Walk:
    def __init__(self, compiler: RuleCompiler, *, is_default: bool) -> None:
        self._compiler = compiler
        self._is_default = is_default
        self._budget = OBJECT_BUDGET
        self.found: list[Violation] = []
        self._noted: set[CompiledRule] = set()
        """Rules of which it is said that an apiserver refuses them."""

    def node(self, value: Any, old: Any, node: RuleNode, typed: RuleNode, place: _Place) -> None:
        """``typed`` is what the schema says of the value outside allOf."""
        if value is None or not node.has_rules:
            return
        if node.rules:
            self._rules(value, old, node, typed, place)
        for each in node.nested:
            self.node(value, old, each, typed, place.nest())
        if isinstance(value, dict):
            self._fields(value, old, node, typed, place)
        elif isinstance(value, list) and node.items is not None and typed.items is not None:
            for index, item in enumerate(value):
                older = _older_item(item, old, typed)
                self.node(item, older, node.items, typed.items, place.item(index))

    def _fields(
        self, value: Mapping[str, Any], old: Any, node: RuleNode, typed: RuleNode, place: _Place
    ) -> None:
        for key, item in value.items():
            older = old.get(key, MISSING) if isinstance(old, dict) else MISSING
            inner, inner_typed = node.properties.get(key), typed.properties.get(key)
            if inner is not None and inner_typed is not None:
                self.node(item, older, inner, inner_typed, place.field(key))
            elif node.additional is not None and typed.additional is not None:
                self.node(item, older, node.additional, typed.additional, place.key(key))

    def _rules(self, value: Any, old: Any, node: RuleNode, typed: RuleNode, place: _Place) -> None:
        rules = self._compiler.rules(node, typed)
        is_new = old is MISSING or old is None
        variables: dict[str, Any] = {}
        fault = _convert(variables, SELF, value, typed)
        if not is_new and any(rule.uses_old for rule in rules):
            _convert(variables, OLD_SELF, old, typed)
        for rule in rules:
            if rule.fault == UNTYPED and self._is_default:
                self._refuse(rule, typed, place, f"rule compiler initialization error: {UNTYPED}")
                return
            if rule.fault and self._is_default:
                self._refuse(rule, typed, place, f"rule compile error: {rule.fault}")
            elif (rule.fault or rule.message_fault) and rule not in self._noted:
                self._noted.add(rule)
                if rule.fault:
                    self._add(Severity.NOTE, Check.NOT_CHECKED, place, _refusal_text(rule))
                else:  # the rule is checked; only its words are not there
                    # One that compiles ends as one that fails when it runs: the rule's own words are there.
                    is_compiled = rule.message_fault.startswith(NOT_INSTANTIATED)
                    severity = Severity.WARNING if is_compiled else Severity.NOTE
                    self._add(severity, Check.DEFINITION, place, _refusal_text(rule))
            if rule.expression is None or (rule.uses_old and is_new and not rule.rule.optional_old):
                continue
            if fault is not None and SELF in rule.expression.names:
                self._refuse(rule, typed, place, f"{fault} evaluating rule: {rule.rule.shown}")
                continue
            self._rule(rule, value, variables, typed, place)

    def _rule(
        self, rule: CompiledRule, value: Any, variables: dict[str, Any], typed: RuleNode, place: _Place
    ) -> None:
        assert rule.expression is not None
        if self._budget <= 0:
            self._refuse(rule, typed, place, _BUDGET)
            raise _BudgetSpent
        given = variables
        if rule.rule.optional_old:
            given = {**variables, OLD_SELF: Optional(variables[OLD_SELF]) if OLD_SELF in variables else NONE}
        try:
            holds, cost = rule.expression.program.evaluate(given, PER_CALL_LIMIT)
        except CostExceeded:
            self._pay(rule, PER_CALL_LIMIT, typed, place)
            self._refuse(rule, typed, place, f"'{_EXCEEDED}': {_TOO_COSTLY} rule: {rule.rule.shown}")
            raise _BudgetSpent from None
        except CelError as error:
            self._pay(rule, error.cost, typed, place)
            self._refuse(rule, typed, place, _error_text(str(error), rule))
            return
        except UndecidedRule as error:
            text = f"the rule {rule.rule.text.strip()!r} is not checked: {error}"
            self._add(Severity.NOTE, Check.NOT_CHECKED, place, text)
            return
        self._pay(rule, cost, typed, place)
        if holds is not True:
            self._fail(rule, value, variables, typed, place)

    def _pay(self, rule: CompiledRule, cost: int, typed: RuleNode, place: _Place) -> None:
        if cost > self._budget:
            self._refuse(rule, typed, place, _BUDGET)
            raise _BudgetSpent
        self._budget -= cost

    def _fail(
        self, rule: CompiledRule, value: Any, variables: dict[str, Any], typed: RuleNode, place: _Place
    ) -> None:
        text = f"{place.text}.{rule.shown_path}" if place.text and rule.shown_path else None
        named = replace(place, path=(*place.path, *rule.path), text=text or rule.shown_path or place.text)
        is_left = not rule.uses_old and place.standing.is_unchanged
        severity = Severity.WARNING if is_left else Severity.ERROR
        message = self._message(rule, variables, typed, named, severity)
        self._add(severity, Check.RULE, named, self._failure(rule, value, typed, named, message))

    def _message(
        self,
        rule: CompiledRule,
        variables: dict[str, Any],
        typed: RuleNode,
        place: _Place,
        severity: Severity,
    ) -> str:
        if rule.message is None:
            return rule.rule.default_message
        try:
            found, cost = rule.message.program.evaluate(variables, PER_CALL_LIMIT)
        except CelError as error:
            self._budget -= error.cost
            return rule.rule.default_message
        except UndecidedRule:
            return rule.rule.default_message
        except CostExceeded:
            text = f"{_TOO_COSTLY} messageExpression: {show_value(rule.rule.message_expression)}"
            self._add(severity, Check.RULE, place, f'{place.shown}: Invalid value: "{typed.kind}": {text}')
            raise _BudgetSpent from None
        if cost > self._budget:
            text = (
                "messageExpression evaluation failed due to running out of cost budget, "
                "no further validation rules will be run"
            )
            self._add(severity, Check.RULE, place, f'{place.shown}: Invalid value: "{typed.kind}": {text}')
            raise _BudgetSpent
        self._budget -= cost
        message = found.strip()
        is_usable = message and "\n" not in message and len(message.encode()) <= MOST_MESSAGE
        return message if is_usable else rule.rule.default_message

    def _failure(self, rule: CompiledRule, value: Any, typed: RuleNode, place: _Place, message: str) -> str:
        is_left_out = typed.kind in ("object", "array") or typed.is_resource
        written = "" if is_left_out else f" {show_value(value)}"
        match rule.rule.reason:
            case "FieldValueForbidden":
                return f"{place.shown}: Forbidden: {message}"
            case "FieldValueRequired":
                return f"{place.shown}: Required value: {message}"
            case "FieldValueDuplicate":
                return f"{place.shown}: Duplicate value{f':{written}' if written else ''}"
        return f"{place.shown}: Invalid value:{f'{written}:' if written else ''} {message}"

    def _refuse(self, rule: CompiledRule, typed: RuleNode, place: _Place, text: str) -> None:
        kind = "object" if typed.is_resource else typed.kind
        self._add(Severity.ERROR, Check.RULE, place, f'{place.shown}: Invalid value: "{kind}": {text}')

    def _add(self, severity: Severity, check: Check, place: _Place, text: str) -> None:
        self.found.append(Violation(severity, check, place.path, text))


def _convert(variables: dict[str, Any], name: str, raw: Any, node: RuleNode) -> str | None:
    """Why it does not fit its schema."""
    try:
        variables[name] = converter(node)(raw)
    except CelError as error:
        return str(error)
    return None


def _error_text(error: str, rule: CompiledRule) -> str:
    if error.startswith("no such overload"):
        said = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {said}: {rule.rule.shown}"
    return f"{error} evaluating rule: {rule.rule.shown}"


def _refusal_text(rule: CompiledRule) -> str:
    said = "is not checked" if rule.fault else "has a messageExpression that is not used"
    refused = f"an apiserver refuses the definition: {rule.fault or rule.message_fault}"
    return f"the rule {rule.rule.text.strip()!r} {said}: {refused}"


def _older_item(item: Any, old: Any, typed: RuleNode) -> Any:
    """The item of an older list with the same keys; there is none where a list is no map."""
    if typed.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return MISSING
    wanted = [item.get(key) for key in typed.list_keys]
    found = (
        each
        for each in old
        if isinstance(each, dict) and [each.get(key) for key in typed.list_keys] == wanted
    )
    return next(found, MISSING)

"""Faults of the rules of a definition (apiextensions, pkg/apis/apiextensions/validation).

A rule is refused for its text, its types, or what it may cost: alone, and with all others of its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.go.text import json_text, quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.releases import NEWEST
from specmux_tools.validation.field_errors import FieldError, show_value, unsupported
from specmux_tools.validation.report import Path
from specmux_tools.validation.rules.cel.compiling import CompiledExpression
from specmux_tools.validation.rules.cel.costs.call_estimates import MOST, Range
from specmux_tools.validation.rules.cel.costs.estimates import estimate
from specmux_tools.validation.rules.compiled_rule import CompiledRule, RuleCompiler
from specmux_tools.validation.rules.rule_tree import (
    BadFieldPath,
    RuleNode,
    ValidationRule,
    follow_field_path,
    rule_tree,
)
from specmux_tools.validation.rules.schema_types import MOST_BYTES, Declaration

RULE_LIMIT: Final = 10_000_000
"""Cost of one rule, times how often it may stand in an object."""
DEFINITION_LIMIT: Final = 100_000_000
"""Cost of all rules of a version."""


def expression_cost(expression: CompiledExpression, declared: Declaration) -> int:
    """The most that it may cost for one value."""

    def size(path: tuple[str, ...]) -> Range | None:
        found: Declaration | None = declared
        for part in path[1:]:
            if found is None:
                return None
            if part in ("@items", "@values"):
                found = found.element
            elif part == "@keys":
                found = found.key
            else:
                found = found.fields.get(part)
        return None if found is None else Range(0, found.most)

    return estimate(expression.checked, size).most


def most_occurrences(declared: Declaration) -> int:
    """The most times that such a value may stand in an object where nothing else bounds it."""
    return MOST_BYTES // (declared.least_bytes + 1)


BAD_PATH: Final = "must be a valid path"
RULES: Final = "x-kubernetes-validations"
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_BREAK: Final = re.compile(r"[\n\r]")
_UNTYPED: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)
_MOST_NAMED: Final = 4
"""Rules that are named where all together cost too much."""


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    text: str
    count: int | None
    """The most times that it may stand in an object; None where nothing bounds that."""
    uncorrelated: str = ""
    """The nearest place above which has no older value of its own."""
    is_in_scope: bool = False
    """Whether there are rules above: what has none there is typed by itself."""
    is_untyped: bool = False
    """CEL has no type for what is above, as far as it is in scope."""

    def field(self, name: str, node: RuleNode) -> _Place:
        path, text = (*self.path, "properties", name), f"{self.text}.properties[{name}]"
        return self._below(path, text, node, "" if node.is_correlated else self.text)

    def values(self, node: RuleNode) -> _Place:
        path = (*self.path, "additionalProperties")
        return self._below(path, f"{self.text}.additionalProperties", node)

    def items(self, node: RuleNode) -> _Place:
        uncorrelated = "" if node.list_type == "map" else self.text
        return self._below((*self.path, "items"), f"{self.text}.items", node, uncorrelated)

    def choice(self, index: int) -> _Place:
        text = f"{self.text}.allOf[{index}]"
        return replace(self, path=(*self.path, "allOf", index), text=text)

    def _below(self, path: Path, text: str, node: RuleNode, uncorrelated: str = "") -> _Place:
        most = _most_inside(node)
        count = None if self.count is None or most is None else min(self.count * most, MOST)
        return replace(
            self, path=path, text=text, count=count, uncorrelated=self.uncorrelated or uncorrelated
        )


def compile_rules(
    schema: Mapping[str, Any],
    prefix: str,
    *,
    minor: int = NEWEST,
    known: frozenset[str] = frozenset(),
    takes_cost: bool = False,
    broken: frozenset[Path] = frozenset(),
) -> list[FieldError]:
    """Faults of an ``openAPIV3Schema``; ``prefix`` is its place. ``known``: texts of rules that were in
    the definition before. ``takes_cost``: they may cost too much, each. ``broken``: places at fault, and all
    above them, whose rules are not compiled."""
    return _Definition(minor, known, prefix, broken, takes_cost=takes_cost).faults(rule_tree(schema, {}))


class _Definition:
    def __init__(
        self, minor: int, known: frozenset[str], prefix: str, broken: frozenset[Path], *, takes_cost: bool
    ) -> None:
        self._broken = broken
        self._compiler = RuleCompiler(minor, is_new=True)
        self._stored = RuleCompiler(minor)
        self._known = known
        self._most = MOST if takes_cost else RULE_LIMIT
        self._prefix = prefix
        self._total = 0
        self._costs: list[tuple[int, Path, str]] = []

    def faults(self, tree: RuleNode) -> list[FieldError]:
        root = _Place((), self._prefix, 1)
        found = list(self._compile(tree, tree, root))
        if self._total > DEFINITION_LIMIT:
            self._costs.sort(key=lambda each: -each[0])
            for _, path, place in self._costs[:_MOST_NAMED]:
                words = "contributed to estimated rule cost total exceeding cost limit"
                found.append(FieldError(path, f"{place}: Forbidden: {words} for entire OpenAPIv3 schema"))
            name = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
            words = _over_limit(name, self._total, DEFINITION_LIMIT)
            found.append(FieldError((), f"{self._prefix}: Forbidden: {words}"))
        return found

    def _compile(self, node: RuleNode, typed: RuleNode, place: _Place) -> Iterator[FieldError]:
        declared = self._compiler.declarations.of(typed) if place.is_in_scope or node.rules else None
        is_typed = declared is not None and not place.is_untyped
        if node.rules and place.path not in self._broken and not is_typed:
            yield FieldError((*place.path, RULES), f"{place.text}.{RULES}: Internal error: {_UNTYPED}")
        elif node.rules and place.path not in self._broken:
            for index, rule in enumerate(self._compiler.rules(node, typed)):
                if rule.rule.text in self._known:
                    rule = self._stored.rules(node, typed)[index]
                for name, text in self._expression_faults(rule, typed, place, index):
                    path = (*place.path, RULES, index, name)
                    yield FieldError(path, f"{place.text}.{RULES}[{index}].{name}: {text}")
        if place.is_in_scope or node.rules:
            place = replace(place, is_in_scope=True, is_untyped=not is_typed)
        for inner, inner_typed, below in _below(node, typed, place):
            yield from self._compile(inner, inner_typed, below)

    def _expression_faults(
        self, rule: CompiledRule, typed: RuleNode, place: _Place, index: int
    ) -> Iterator[tuple[str, str]]:
        declared = self._compiler.declarations.of(typed)
        if not rule.uses_old and rule.rule.optional_old is not None:
            value = "true" if rule.rule.optional_old else "false"
            yield "optionalOldSelf", f"Invalid value: {value}: may not be set if oldSelf is not used in rule"
        if rule.fault or rule.expression is None or declared is None:
            yield "rule", f"Invalid value: {_write(rule.rule)}: {rule.fault}"
            return
        count = most_occurrences(declared) if place.count is None else place.count
        cost = min(expression_cost(rule.expression, declared) * count, MOST)
        if cost > self._most:
            yield "rule", f"Forbidden: {_over_limit('estimated rule cost', cost, RULE_LIMIT)}"
        self._observe(cost, place, index, "rule")
        if rule.message_fault:
            yield "messageExpression", f"Invalid value: {_write(rule.rule)}: {rule.message_fault}"
        elif rule.message is not None:
            cost = expression_cost(rule.message, declared)
            if cost > self._most:
                words = _over_limit("estimated messageExpression cost", cost, RULE_LIMIT)
                yield "messageExpression", f"Forbidden: {words}"
            self._observe(cost, place, index, "messageExpression")
        if rule.uses_old and place.uncorrelated:
            words = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield "rule", f"Invalid value: {show_value(rule.rule.text)}: {words} {place.uncorrelated}"

    def _observe(self, cost: int, place: _Place, index: int, name: str) -> None:
        self._total = min(self._total + cost, MOST)
        if cost >= DEFINITION_LIMIT // 100:
            path = (*place.path, RULES, index, name)
            self._costs.append((cost, path, f"{place.text}.{RULES}[{index}].{name}"))


def _below(node: RuleNode, typed: RuleNode, place: _Place) -> Iterator[tuple[RuleNode, RuleNode, _Place]]:
    for name, inner in node.properties.items():
        if inner.has_rules and name in typed.properties:
            yield inner, typed.properties[name], place.field(name, typed)
    if node.additional is not None and node.additional.has_rules and typed.additional is not None:
        yield node.additional, typed.additional, place.values(typed)
    if node.items is not None and node.items.has_rules and typed.items is not None:
        yield node.items, typed.items, place.items(typed)
    for index, nested in enumerate(node.nested):
        if nested.has_rules:
            yield nested, typed, place.choice(index)


def _most_inside(node: RuleNode) -> int | None:
    """Values in it at most; None where nothing says so."""
    if node.kind == "object":
        return node.most_properties if node.says_additional else 1
    return node.most_items if node.kind == "array" else 1


def rule_faults(rule: ValidationRule, typed: RuleNode) -> Iterator[tuple[str, str]]:
    text, message = rule.text.strip(), rule.message.strip()
    if not text:
        yield "rule", "Required value: rule is not specified"
    elif rule.message and not message:
        yield "message", f"Invalid value: {quote_text(rule.message)}: must be non-empty if specified"
    elif _BREAK.search(message):
        yield "message", f"Invalid value: {quote_text(rule.message)}: must not contain line breaks"
    elif _BREAK.search(text) and not message:
        yield "message", "Required value: message must be specified if rule contains line breaks"
    if rule.message_expression and not rule.message_expression.strip():
        yield "messageExpression", "Required value: messageExpression must be non-empty if specified"
    if rule.reason and rule.reason not in _REASONS:
        yield "reason", unsupported(rule.reason, _REASONS)
    yield from _field_path_faults(rule.field_path, typed)


def _field_path_faults(path: str, typed: RuleNode) -> Iterator[tuple[str, str]]:
    written = f"Invalid value: {quote_text(path)}: "
    if path and not path.strip():
        yield "fieldPath", f"{written}must be non-empty if specified"
    if _BREAK.search(path):
        yield "fieldPath", f"{written}must not contain line breaks"
    if path:
        try:
            follow_field_path(path, typed)
        except BadFieldPath:
            yield "fieldPath", f"{written}{BAD_PATH}"


def _write(rule: ValidationRule) -> str:
    """The rule in memory, as Go's encoding/json writes it."""
    reason = json_text(rule.reason) if rule.reason else "null"
    old = "null" if rule.optional_old is None else "true" if rule.optional_old else "false"
    return (
        f'{{"Rule":{json_text(rule.text)},"Message":{json_text(rule.message)},'
        f'"MessageExpression":{json_text(rule.message_expression)},"Reason":{reason},'
        f'"FieldPath":{json_text(rule.field_path)},"OptionalOldSelf":{old}}}'
    )


def _over_limit(name: str, cost: int, limit: int) -> str:
    factor = float(cost) / float(limit)
    shown_factor = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    advice = "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{name} exceeds budget by factor of {shown_factor} (try simplifying the rule, or {advice})"

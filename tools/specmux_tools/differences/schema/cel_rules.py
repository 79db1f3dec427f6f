"""Validation rules (``x-kubernetes-validations``): finds out which objects a new rule may reject.

Rules are compared as they are parsed, without types and macros: comments, white space, parentheses and the
kind of quotes mean nothing. A rule that cannot be parsed is compared as text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from specmux_converters.json_values import objects, text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding
from specmux_tools.validation.rules.cel.parsing.parser import parse
from specmux_tools.validation.rules.cel.parsing.syntax import (
    Call,
    Expression,
    Identifier,
    InvalidExpression,
    Literal,
    Select,
    descendants,
)

_KEYWORD: Final = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class CELRule:
    text: str
    message: str
    root: Expression | None
    """None for a text that does not parse."""
    meaning: Any
    """Equal for rules that differ in their spelling only."""

    @property
    def is_immutability(self) -> bool:
        match self.root:
            case Call(function="_==_", arguments=[Identifier(name=one), Identifier(name=other)]):
                return {one, other} == {"self", "oldSelf"}
        return False

    @property
    def is_transition(self) -> bool:
        parts = () if self.root is None else descendants(self.root)
        return any(isinstance(part, Identifier) and part.name == "oldSelf" for part in parts)


def rule_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], new_fields: frozenset[str]
) -> Iterator[Finding]:
    """Yields one finding per kind of change, with the texts of all its rules. ``new_fields``: those added to
    this object."""
    before, after = _rules(old), _rules(new)
    gone = [rule for key, rule in before.items() if key not in after]
    added = [rule for key, rule in after.items() if key not in before]
    removed, fresh = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for was, now in _pairs(gone, added):
        gone.remove(was)
        added.remove(now)
        removed["rule-changed"].append(was.text)
        fresh["rule-changed"].append(now.text)
    for rule in gone:
        removed["field-became-mutable" if rule.is_immutability else "rule-removed"].append(rule.text)
    for rule in added:
        fresh[_addition(rule, new_fields)].append(rule.text)
    for change in {**removed, **fresh}:
        yield Finding(change, "", old=removed.get(change), new=fresh.get(change))


def has_other_messages(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the message of an otherwise unchanged rule changed."""
    before, after = _rules(old), _rules(new)
    return any(before[key].message != after[key].message for key in before.keys() & after.keys())


def _rules(schema: Mapping[str, Any]) -> dict[tuple[Any, bool], CELRule]:
    found = {}
    for entry in objects(schema.get(_KEYWORD)):
        if isinstance(entry.get("rule"), str):
            said = entry["rule"].strip()
            rule = CELRule(said, text(entry.get("message")), *_parse(said))
            # With optionalOldSelf a rule runs when an object is created, too.
            found[rule.meaning, entry.get("optionalOldSelf") is True] = rule
    return found


@lru_cache(maxsize=1024)
def _parse(said: str) -> tuple[Expression | None, Any]:
    """The rule, and its meaning."""
    try:
        root = parse(said, {})
        return root, _shape(root)
    except (InvalidExpression, RecursionError):
        return None, " ".join(said.split())


def _shape(part: Any) -> Any:
    """Equal for equal expressions, wherever they stand in a text; true is not 1."""
    if isinstance(part, list | tuple):
        return tuple(map(_shape, part))
    names = getattr(part, "__dataclass_fields__", ())
    values = [_shape(getattr(part, name)) for name in names if name != "at"]
    return (type(part), *values) if names else (type(part), part)


def _pairs(gone: list[CELRule], added: list[CELRule]) -> list[tuple[CELRule, CELRule]]:
    """Pairs each removed rule with its successor: by message, or if only one was removed and only one
    added."""
    old = [rule for rule in gone if not rule.is_immutability]
    new = [rule for rule in added if not rule.is_immutability]
    if len(gone) == len(added) == len(old) == len(new) == 1:
        return [(old[0], new[0])]
    pairs = []
    for rule in new:
        same = next((was for was in old if rule.message and was.message == rule.message), None)
        if same is not None:
            old.remove(same)
            pairs.append((same, rule))
    return pairs


def _addition(rule: CELRule, new_fields: frozenset[str]) -> str:
    if rule.is_immutability:
        return "field-became-immutable"
    if rule.is_transition:
        return "transition-rule-added"
    return "rule-added-for-new-fields" if _is_guarded(rule.root, new_fields) else "rule-added"


def _is_guarded(rule: Expression | None, new_fields: frozenset[str]) -> bool:
    """Whether an object without the new fields satisfies the rule.

    ``!(has(self.F) && …)``, ``!has(self.F) || …`` and ``has(self.F) ? … : true`` are such guards.
    """
    match rule:
        case Call(function="_?_:_", arguments=[condition, _, Literal(value=True)]):
            return _asks(condition, new_fields)
        case Call(function="_||_", arguments=alternatives):
            return any(_is_guarded(each, new_fields) for each in alternatives)
        case Call(function="!_", arguments=[condition]):
            return _asks(condition, new_fields)
    return False


def _asks(condition: Expression, new_fields: frozenset[str]) -> bool:
    """Whether the condition is false without a new field: a ``has(self.F)`` among its conjuncts."""
    match condition:
        case Call(function="_&&_", arguments=conjuncts):
            return any(_asks(each, new_fields) for each in conjuncts)
        case Call(function="has", arguments=[Select(operand=Identifier(name="self"), name=name)]):
            return name in new_fields
    return False

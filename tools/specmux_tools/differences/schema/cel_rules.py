"""Validation rules (``x-kubernetes-validations``): finds out which objects a new rule may reject.

Works on the text alone: skips literals, counts parentheses, evaluates nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.json_values import objects, text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding

_LITERAL: Final = re.compile(
    r"""[rRbB]{0,2}(?:"{3}.*?"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.DOTALL
)
_COMMENT: Final = re.compile(r"//[^\n]*")
_TOKEN: Final = re.compile(rf"{_COMMENT.pattern}|{_LITERAL.pattern}|.", re.DOTALL)
_OLD_SELF: Final = re.compile(r"\boldSelf\b")
_IMMUTABLE: Final = re.compile(r"\(*(?:self==oldSelf|oldSelf==self)\)*")
_HAS: Final = re.compile(r"has\(self\.([A-Za-z_][A-Za-z0-9_]*)\)")
_OPEN, _CLOSE = "([{", ")]}"
_KEYWORD: Final = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class CELRule:
    text: str
    message: str
    takes_optional: bool
    """``optionalOldSelf``: the rule also runs at creation."""

    @property
    def meaning(self) -> str:
        """The normalized text: equal for rules that differ only in comments and white space."""
        code, literals = [""], []
        for token in _TOKEN.finditer(self.text):
            if token[0].startswith("//"):
                code[-1] += " "
            elif _LITERAL.fullmatch(token[0]):
                literals.append(token[0])
                code.append("")
            else:
                code[-1] += token[0]
        parts = (_space_words(each) + literal for each, literal in zip(code, [*literals, ""], strict=True))
        return "".join(parts)

    @property
    def bare(self) -> str:
        """The rule without literals, comments and white space."""
        return re.sub(r"\s+", "", _COMMENT.sub("", _LITERAL.sub("''", self.text)))

    @property
    def is_immutability(self) -> bool:
        return _IMMUTABLE.fullmatch(self.bare) is not None

    @property
    def is_transition(self) -> bool:
        return _OLD_SELF.search(_COMMENT.sub("", _LITERAL.sub("''", self.text))) is not None


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


def _rules(schema: Mapping[str, Any]) -> dict[tuple[str, bool], CELRule]:
    found = {}
    for entry in objects(schema.get(_KEYWORD)):
        if isinstance(entry.get("rule"), str):
            optional = entry.get("optionalOldSelf") is True
            rule = CELRule(entry["rule"].strip(), text(entry.get("message")), optional)
            found[rule.meaning, rule.takes_optional] = rule
    return found


def _space_words(text: str) -> str:
    """The code between literals, with one space where two words would run together."""
    return re.sub(r"(?<!\w) | (?!\w)", "", re.sub(r"\s+", " ", text))


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
    return "rule-added-for-new-fields" if _is_guarded(rule.bare, new_fields) else "rule-added"


def _is_guarded(bare: str, new_fields: frozenset[str]) -> bool:
    """Whether an object without the new fields satisfies the rule.

    ``!(has(self.F) && …)``, ``!has(self.F) || …`` and ``has(self.F) ? … : true`` are such guards.
    """
    bare = _unwrap_parentheses(bare)
    asked = _split_operands(bare, "?")
    if len(asked) > 1:
        answers = _split_operands(bare[len(asked[0]) + 1 :], ":")
        return answers[-1] == "true" and len(answers) == 2 and _asks(asked[0], new_fields)
    alternatives = _split_operands(bare, "||")
    if len(alternatives) > 1:
        return any(_is_guarded(part, new_fields) for part in alternatives)
    if bare.startswith("!"):
        inner = _unwrap_parentheses(bare[1:])
        return _asks(inner, new_fields) and (inner != bare[1:] or _names(inner, new_fields))
    return False


def _asks(condition: str, new_fields: frozenset[str]) -> bool:
    """Whether the condition is false without a new field: a ``has(self.F)`` among its conjuncts."""
    condition = _unwrap_parentheses(condition)
    if len(_split_operands(condition, "||")) > 1 or len(_split_operands(condition, "?")) > 1:
        return False
    return any(_names(part, new_fields) for part in _split_operands(condition, "&&"))


def _names(part: str, new_fields: frozenset[str]) -> bool:
    match = _HAS.fullmatch(_unwrap_parentheses(part))
    return match is not None and match[1] in new_fields


def _unwrap_parentheses(text: str) -> str:
    """The text without parentheses that enclose all of it."""
    while text.startswith("(") and _find_closing(text) == len(text) - 1:
        text = text[1:-1]
    return text


def _find_closing(text: str) -> int:
    """The index of the bracket that closes the first character of ``text``."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0:
            return index
    return -1


def _split_operands(text: str, operator: str) -> list[str]:
    """The operands of an operator at bracket depth 0."""
    parts, start, depth = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and index >= start and text.startswith(operator, index):
            parts.append(text[start:index])
            start = index + len(operator)
    return [*parts, text[start:]]

"""Unions that CEL rules express: exactly or at most one of some fields, or a field per discriminator value.

A rule is evaluated with fields set and unset, so it is recognized by what it accepts, however it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from specmux_converters.json_values import array, mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.unions import Member, Union, UnionForm, allowed_values

if TYPE_CHECKING:  # imported with the first rule that may express a union
    from specmux_tools.validation.rules.cel.parsing.syntax import Expression

EXTENSION: Final = UnionForm.RULES.value

_MARK: Final = "has(self."
_MOST_FIELDS: Final = 16
_OTHER: Final = "\0"
"""A discriminator value that no rule names."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of the fields may be set, or must be."""

    fields: tuple[str, ...]
    takes_none: bool


@dataclass(frozen=True, slots=True)
class _Condition:
    """A field that belongs to a discriminator value."""

    discriminator: str
    member: Member
    forbids: bool
    """The field must be unset for any other value."""


def unions_of_rules(schema: Mapping[str, Any]) -> Iterator[Union]:
    """Yields unions by CEL's field names; fields with escaped names are left out."""
    conditions: dict[str, list[_Condition]] = {}
    for text in _texts(schema):
        match idiom := _idiom(text):
            case _Choice(fields, takes_none):
                members = tuple(Member(name, name) for name in fields)
                yield Union(members, form=UnionForm.RULES, takes_none=takes_none)
            case _Condition(discriminator):
                conditions.setdefault(discriminator, []).append(idiom)
    for discriminator, found in conditions.items():
        members = tuple(_members(found))
        # Fields that share a value may be set together.
        if members and len({member.value for member in members}) == len(members):
            allowed = allowed_values(schema, discriminator)
            yield Union(members, discriminator, allowed, form=UnionForm.RULES)


def _members(conditions: list[_Condition]) -> Iterator[Member]:
    """Joins rules: a value may forbid a field in one rule and require its own in another."""
    required = {each.member.field for each in conditions if not each.member.is_optional}
    for each in conditions:
        if each.forbids:
            yield Member(each.member.field, each.member.value, each.member.field not in required)


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    for entry in array(schema.get(EXTENSION)):
        text = mapping(entry).get("rule")
        if isinstance(text, str) and _MARK in text and "__" not in text:
            yield text


@lru_cache(maxsize=1024)
def _idiom(text: str) -> _Choice | _Condition | None:
    from specmux_tools.validation.rules.cel.parsing.macros import has, loop_exists_one, loop_filter
    from specmux_tools.validation.rules.cel.parsing.parser import parse
    from specmux_tools.validation.rules.cel.parsing.syntax import InvalidExpression

    macros = {
        ("has", 1, False): has,
        ("exists_one", 2, True): loop_exists_one,
        ("filter", 2, True): loop_filter,
    }
    try:
        rule = _TriedRule(parse(text, macros))
        return rule.choice() or rule.condition()
    except (InvalidExpression, _Untold, TypeError):
        return None


class _Untold(Exception):
    """The expression is unsupported or has no value."""


class _TriedRule:
    def __init__(self, rule: Expression) -> None:
        from specmux_tools.validation.rules.cel.parsing.syntax import (
            Identifier,
            Literal,
            Select,
            descendants,
        )

        parts = descendants(rule)
        fields = [part for part in parts if isinstance(part, Select) and isinstance(part.operand, Identifier)]
        self._rule = rule
        self._tested = tuple(dict.fromkeys(part.name for part in fields if part.is_test))
        self._read = {part.name for part in fields if not part.is_test}
        self._texts = {
            part.value for part in parts if isinstance(part, Literal) and isinstance(part.value, str)
        }

    def choice(self) -> _Choice | None:
        fields = self._tested
        if self._read or not 2 <= len(fields) <= _MOST_FIELDS:
            return None
        if not all(self._takes((name,)) for name in fields):
            return None
        if any(map(self._takes, (*combinations(fields, 2), fields))):
            return None
        return _Choice(fields, self._takes(()))

    def condition(self) -> _Condition | None:
        if len(self._read) != 1 or len(self._texts) != 1:
            return None
        (discriminator,), (value,) = self._read, self._texts
        tested = [name for name in self._tested if name != discriminator]
        if len(tested) != 1:
            return None
        (name,) = tested
        own, other = {discriminator: value}, {discriminator: _OTHER}
        if not (self._takes((name,), own) and self._takes((), other)):
            return None
        forbids, requires = not self._takes((name,), other), not self._takes((), own)
        if not (forbids or requires):
            return None
        return _Condition(discriminator, Member(name, value, not requires), forbids)

    def _takes(self, fields: tuple[str, ...], texts: Mapping[str, str] | None = None) -> bool:
        """Raises _Untold."""
        found = _value(self._rule, {**dict.fromkeys(fields), **(texts or {})}, None)
        if not isinstance(found, bool):
            raise _Untold
        return found


def _value(part: Expression, given: Mapping[str, Any], item: Any) -> Any:
    """The value of an expression over the fields ``given``; ``item`` is the loop variable. Raises _Untold."""
    from specmux_tools.validation.rules.cel.parsing.syntax import (
        Call,
        Comprehension,
        Identifier,
        ListLiteral,
        Literal,
        Select,
    )

    match part:
        case Literal(value=value):
            return value
        case Select(operand=Identifier(name="self"), name=name, is_test=True):
            return name in given
        case Select(operand=Identifier(name="self"), name=name) if given.get(name) is not None:
            return given[name]
        case Identifier(name=name) if name != "self" and item is not None:
            return item
        case ListLiteral(items=items):
            return [_value(each, given, item) for each in items]
        case Comprehension(over=ListLiteral(items=items), loop=loop, body=[test, *_]):
            kept = [each for each in items if _value(test, given, _value(each, given, item)) is True]
            return len(kept) == 1 if loop == "exists_one" else kept
        case Call(function="_?_:_", arguments=[test, first, second]):
            return _value(first if _value(test, given, item) is True else second, given, item)
        case Call(function="_&&_", arguments=arguments):
            return all(_value(each, given, item) is True for each in arguments)
        case Call(function="_||_", arguments=arguments):
            return any(_value(each, given, item) is True for each in arguments)
        case Call(function="size", arguments=arguments, target=target):
            return len(_value(target or arguments[0], given, item))
        case Call(function=function, arguments=arguments) if function in _OPERATORS:
            return _OPERATORS[function](*(_value(each, given, item) for each in arguments))
    raise _Untold


_OPERATORS: Final[Mapping[str, Any]] = {
    "!_": lambda value: not value,
    "_==_": lambda first, second: first == second,
    "_!=_": lambda first, second: first != second,
    "_+_": lambda first, second: first + second,
    "_<=_": lambda first, second: first <= second,
    "_<_": lambda first, second: first < second,
    "@in": lambda first, second: first in second,
}

"""Compiles a text to a program: parsed, checked, its literals checked, planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from specmux_converters.go.regexp import pattern_fault
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.checker import CheckedExpression, Structs, check
from specmux_tools.validation.rules.cel.checking.declarations import Environment
from specmux_tools.validation.rules.cel.checking.types import CelType, unwrap_optional
from specmux_tools.validation.rules.cel.evaluation.planning import Program, plan
from specmux_tools.validation.rules.cel.libraries.conversions import at_second, is_in_range
from specmux_tools.validation.rules.cel.libraries.formatting import WANTED, BadClause, clauses
from specmux_tools.validation.rules.cel.libraries.times import read_duration, read_timestamp
from specmux_tools.validation.rules.cel.parsing.parser import MOST_DEPTH, parse
from specmux_tools.validation.rules.cel.parsing.syntax import (
    Call,
    Expression,
    InvalidExpression,
    Issue,
    ListLiteral,
    Literal,
    MapLiteral,
    children,
)
from specmux_tools.validation.rules.cel.values.values import CelError

_READS: Final[dict[str, Callable[[str], bool]]] = {
    "duration": lambda text: read_duration(text) is not None,
    "timestamp": lambda text: (time := read_timestamp(text)) is not None and is_in_range(time),
    "matches": lambda text: pattern_fault(text) is None,
}


def _walk(checked: CheckedExpression, expression: Expression, *, is_exempt: bool) -> Iterator[Issue]:
    match expression:
        case Call():
            yield from _call(checked, expression)
            is_exempt = is_exempt or expression.function == "format"
        case ListLiteral() if not is_exempt:
            yield from _list(checked, expression)
        case MapLiteral() if not is_exempt:
            yield from _map(checked, expression)
    for child in children(expression):
        yield from _walk(checked, child, is_exempt=is_exempt)


def _call(checked: CheckedExpression, call: Call) -> Iterator[Issue]:
    reads = _READS.get(call.function)
    if reads is not None and call.arguments:
        literal = call.arguments[0]
        value = literal.value if isinstance(literal, Literal) else None
        is_late = call.function == "timestamp" and type(value) is int and not is_in_range(at_second(value))
        if is_late or (isinstance(value, str) and not reads(value)):
            yield Issue(literal.at, f"invalid {call.function} argument")
    if call.function == "format" and isinstance(call.target, Literal) and len(call.arguments) == 1:
        arguments = call.arguments[0]
        if isinstance(call.target.value, str) and isinstance(arguments, ListLiteral):
            yield from _format(checked, call, call.target.value, arguments.items)


def _format(checked: CheckedExpression, call: Call, text: str, items: list[Expression]) -> Iterator[Issue]:
    used = 0
    try:
        for part in clauses(text, len(items)):
            if isinstance(part, str):
                continue
            bad = _unfit(checked, part[0], items[used])
            used += 1
            if bad is not None:
                of = checked.type(bad).name
                yield Issue(bad.at, f"error during formatting: {WANTED[part[0].lower()][1]}, was given {of}")
                return
    except BadClause as fault:
        yield Issue(call.at, str(fault))
        return
    if len(items) > used:
        counts = f"(expected {used}, got {len(items)})"
        yield Issue(call.at, f"too many arguments supplied to string.format {counts}")


def _unfit(checked: CheckedExpression, clause: str, expression: Expression) -> Expression | None:
    """The part that the clause does not take."""
    of = checked.type(expression)
    kinds = WANTED[clause.lower()][0]
    is_text = clause in "fe" and of.name == "string"
    if not of.is_dyn and of.name not in kinds and not is_text:
        return expression
    if clause == "s" and isinstance(expression, ListLiteral | MapLiteral):
        return next((bad for each in children(expression) if (bad := _unfit(checked, "s", each))), None)
    return None


def _list(checked: CheckedExpression, expression: ListLiteral) -> Iterator[Issue]:
    first: CelType | None = None
    for index, item in enumerate(expression.items):
        of = checked.type(item)
        of = unwrap_optional(of)[0] if index in expression.optional else of
        if first is not None and of != first:
            yield Issue(item.at, f"expected type '{first}' but found '{of}'")
            return
        first = first or of


def _map(checked: CheckedExpression, expression: MapLiteral) -> Iterator[Issue]:
    keys: CelType | None = None
    values: CelType | None = None
    for entry in expression.entries:
        key, value = checked.type(entry.key), checked.type(entry.value)
        value = unwrap_optional(value)[0] if entry.is_optional else value
        if keys is not None and key != keys:
            yield Issue(entry.key.at, f"expected type '{keys}' but found '{key}'")
        if values is not None and value != values:
            yield Issue(entry.value.at, f"expected type '{values}' but found '{value}'")
        keys, values = keys or key, values or value


class NotInstantiable(Exception):
    """An expression whose constants cannot be computed."""


class WrongResult(Exception):
    """An expression that gives another type than is wanted."""


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    checked: CheckedExpression
    program: Program
    names: frozenset[str]
    """The variables that it uses."""


def compile_expression(
    text: str,
    environment: Environment,
    variables: Mapping[str, CelType],
    structs: Structs,
    wanted: CelType | None = None,
) -> CompiledExpression:
    """Raises InvalidExpression, WrongResult, NotInstantiable."""
    checked = check_expression(text, environment, variables, structs)
    if wanted is not None and (checked.result != wanted or checked.result.is_nullable):
        raise WrongResult(f"must evaluate to a {wanted}")
    try:
        program = plan(checked, opens_typed=environment.opens_typed)
    except CelError as error:
        raise NotInstantiable(str(error)) from error
    used = frozenset(name for name in checked.names.values() if name in variables)
    return CompiledExpression(checked, program, used)


def check_expression(
    text: str, environment: Environment, variables: Mapping[str, CelType], structs: Structs
) -> CheckedExpression:
    """Raises InvalidExpression."""
    try:
        root = parse(text, environment.macros)
        checked, issues = check(root, environment, variables, structs)
        issues = issues or list(_walk(checked, checked.root, is_exempt=False))
    except RecursionError as error:
        fault = Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}")
        raise InvalidExpression(text, [fault]) from error
    if issues:
        raise InvalidExpression(text, issues)
    return checked

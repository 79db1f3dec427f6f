"""Macros: calls that are written out as loops and tests before types are checked (cel-go, macro.go)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final, TypeAlias

from specmux_tools.validation.rules.cel.parsing.syntax import (
    Call,
    Comprehension,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
SORTED: Final = "@__sortBy_input__"
_OLD_ACCUMULATOR: Final = "__result__"

Macro: TypeAlias = Callable[[int, Expression | None, list[Expression]], Expression | None]
"""Given its place, target and arguments; None where it is a plain call after all. Raises BadMacro."""


class BadMacro(Exception):
    def __init__(self, at: int, message: str) -> None:
        self.at = at
        self.message = message
        super().__init__(message)


def has(at: int, _: Expression | None, arguments: list[Expression]) -> Expression:
    selected = arguments[0]
    if not isinstance(selected, Select):
        raise BadMacro(selected.at, "invalid argument to has() macro")
    return Select(at, selected.operand, selected.name, is_test=True)


def loop_all(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    condition = Call(at, "@not_strictly_false", [_accumulator(at)])
    step = Call(at, "_&&_", [_accumulator(at), arguments[-1]])
    return _quantifier("all", at, target, arguments, Literal(at, True), condition, step, _accumulator(at))


def loop_exists(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    condition = Call(at, "@not_strictly_false", [Call(at, "!_", [_accumulator(at)])])
    step = Call(at, "_||_", [_accumulator(at), arguments[-1]])
    return _quantifier("exists", at, target, arguments, Literal(at, False), condition, step, _accumulator(at))


def loop_exists_one(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    counted = Call(at, "_+_", [_accumulator(at), Literal(at, 1)])
    step = Call(at, "_?_:_", [arguments[-1], counted, _accumulator(at)])
    result = Call(at, "_==_", [_accumulator(at), Literal(at, 1)])
    return _quantifier("exists_one", at, target, arguments, Literal(at, 0), Literal(at, True), step, result)


def loop_filter(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    name = _variable(arguments[0], "argument is not an identifier")
    return _collect_list("filter", at, target, (name,), [arguments[1], arguments[0]])


def loop_map(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    name = _variable(arguments[0], "argument is not an identifier")
    return _collect_list("map", at, target, (name,), arguments[1:])


def transform_list(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    return _collect_list("map", at, target, _two_variables(arguments), arguments[2:])


def transform_map(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    names = _two_variables(arguments)
    step = Call(at, "cel.@mapInsert", [_accumulator(at), Identifier(at, names[0]), arguments[-1]])
    return _collect("transform_map", at, target, names, arguments[2:], MapLiteral(at, []), step)


def transform_map_entry(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    step = Call(at, "cel.@mapInsert", [_accumulator(at), arguments[-1]])
    names, start = _two_variables(arguments), MapLiteral(at, [])
    return _collect("transform_map_entry", at, target, names, arguments[2:], start, step)


def opt_map(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    bound = _bound_value("optMap", at, target, arguments)
    return _where_valued(at, target, Call(at, "optional.of", [bound]))


def opt_flat_map(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    return _where_valued(at, target, _bound_value("optFlatMap", at, target, arguments))


def sort_by(at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    if not isinstance(target, ListLiteral | Select | Identifier | Comprehension | Call):
        fault = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise BadMacro(at if target is None else target.at, fault)
    keys = loop_map(at, Identifier(at, SORTED), arguments)
    return bind(at, SORTED, target, Call(at, "@sortByAssociatedKeys", [keys], Identifier(at, SORTED)))


def bind(at: int, name: str, value: Expression, result: Expression) -> Comprehension:
    """A loop over nothing, whose accumulator has a name."""
    return Comprehension(
        at,
        loop="bind",
        over=ListLiteral(at, []),
        variables=(UNUSED,),
        accumulator=name,
        start=value,
        condition=Literal(at, False),
        step=Identifier(at, name),
        result=result,
    )


def _quantifier(
    loop: str,
    at: int,
    target: Expression | None,
    arguments: list[Expression],
    start: Expression,
    condition: Expression,
    step: Expression,
    result: Expression,
) -> Expression:
    assert target is not None
    names: tuple[str, ...] = (
        _two_variables(arguments)
        if len(arguments) == 3
        else (_variable(arguments[0], "argument must be a simple name"),)
    )
    body = [arguments[-1]]
    return Comprehension(at, loop, target, names, ACCUMULATOR, start, condition, step, result, body)


def _collect(
    loop: str,
    at: int,
    target: Expression | None,
    names: tuple[str, ...],
    body: list[Expression],
    start: Expression,
    step: Expression,
) -> Expression:
    """``body``: the transformation, which ``step`` adds, behind a predicate, if there is one."""
    assert target is not None
    if len(body) == 2:
        step = Call(at, "_?_:_", [body[0], step, _accumulator(at)])
    condition = Literal(at, True)
    return Comprehension(at, loop, target, names, ACCUMULATOR, start, condition, step, _accumulator(at), body)


def _collect_list(
    loop: str, at: int, target: Expression | None, names: tuple[str, ...], body: list[Expression]
) -> Expression:
    step = Call(at, "_+_", [_accumulator(at), ListLiteral(at, [body[-1]])])
    return _collect(loop, at, target, names, body, ListLiteral(at, []), step)


def _bound_value(macro: str, at: int, target: Expression | None, arguments: list[Expression]) -> Expression:
    if not isinstance(arguments[0], Identifier):
        raise BadMacro(arguments[0].at, f"{macro}() variable name must be a simple identifier")
    value = Call(at, "value", [], copy.deepcopy(target))
    return bind(at, arguments[0].name, value, arguments[1])


def _where_valued(at: int, target: Expression | None, found: Expression) -> Expression:
    return Call(at, "_?_:_", [Call(at, "hasValue", [], target), found, Call(at, "optional.none", [])])


def _accumulator(at: int) -> Identifier:
    return Identifier(at, ACCUMULATOR)


def _variable(argument: Expression, fault: str) -> str:
    if not isinstance(argument, Identifier):
        raise BadMacro(argument.at, fault)
    if argument.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise BadMacro(argument.at, "iteration variable overwrites accumulator variable")
    return argument.name


def _two_variables(arguments: list[Expression]) -> tuple[str, str]:
    first, second = arguments[:2]
    for argument in (first, second):
        if not isinstance(argument, Identifier):
            raise BadMacro(argument.at, "argument must be a simple name")
    assert isinstance(first, Identifier)
    assert isinstance(second, Identifier)
    if first.name == second.name:
        raise BadMacro(second.at, f"duplicate variable name: {first.name}")
    names = [_variable(argument, "") for argument in (first, second)]
    return names[0], names[1]

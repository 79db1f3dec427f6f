"""From text to program: parsed, checked, its literals checked, planned."""

from __future__ import annotations

from collections.abc import Mapping

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.checker import CheckedExpression, Structs, check
from specmux_tools.validation.rules.cel.checking.declarations import Environment
from specmux_tools.validation.rules.cel.evaluation.planning import Program, plan
from specmux_tools.validation.rules.cel.literal_checks import literal_issues
from specmux_tools.validation.rules.cel.parsing.issues import InvalidExpression, Issue
from specmux_tools.validation.rules.cel.parsing.parser import MOST_DEPTH, parse
from specmux_tools.validation.rules.cel.values.types import CelType
from specmux_tools.validation.rules.cel.values.values import CelError


class NotInstantiable(Exception):
    """An expression whose constants cannot be computed."""


class WrongResult(Exception):
    """An expression that gives another type than is wanted."""


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    checked: CheckedExpression
    program: Program
    names: frozenset[str]
    """Of the variables that it uses."""


def compile_expression(
    text: str,
    environment: Environment,
    variables: Mapping[str, CelType],
    structs: Structs,
    wanted: CelType | None = None,
) -> CompiledExpression:
    """Raises InvalidExpression, WrongResult, NotInstantiable."""
    checked = checked_expression(text, environment, variables, structs)
    if wanted is not None and (checked.result != wanted or checked.result.is_nullable):
        raise WrongResult(f"must evaluate to a {wanted}")
    try:
        program = plan(checked, opens_typed=environment.opens_typed)
    except CelError as error:
        raise NotInstantiable(str(error)) from error
    used = frozenset(name for name in checked.names.values() if name in variables)
    return CompiledExpression(checked, program, used)


def checked_expression(
    text: str, environment: Environment, variables: Mapping[str, CelType], structs: Structs
) -> CheckedExpression:
    """Raises InvalidExpression."""
    try:
        root = parse(text, environment.macros, takes_optional=environment.takes_optional)
        checked, issues = check(root, environment, variables, structs)
        issues = issues or literal_issues(checked)
    except RecursionError as error:
        fault = Issue(-1, f"expression recursion limit exceeded: {MOST_DEPTH}")
        raise InvalidExpression(text, [fault]) from error
    if issues:
        raise InvalidExpression(text, issues)
    return checked

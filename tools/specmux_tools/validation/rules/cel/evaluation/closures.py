"""Closures of calls and literals: what each node of an expression does when it runs, in a frame that has its
variables and its cost; and which overload a call is when its values are known (cel-go, interpreter)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from specmux_tools.validation.rules.cel.checking.declarations import Apply, Overload
from specmux_tools.validation.rules.cel.checking.types import DYN_KIND, LIST_KIND, PARAM_KIND, CelType
from specmux_tools.validation.rules.cel.costs.metering import CallCost
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    CelError,
    CelPanic,
    CostExceeded,
    LiteralMap,
    Optional,
    no_such_overload,
    type_name,
)

_OF_TEXTS: Final = frozenset(("contains", "endsWith", "startsWith"))
_BY_TRAIT: Final = frozenset(("matches", "size", "sort"))
_PARAMETRIC: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)", "optional_type": "optional_type(dyn)"}
_RECEIVERS: Final = frozenset(("google.protobuf.Duration", "google.protobuf.Timestamp", "string"))


class Frame:
    __slots__ = ("cost", "limit", "values")

    def __init__(self, slots: int, limit: int) -> None:
        self.values: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit

    def pay(self, cost: int) -> None:
        """Raises CostExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Run: TypeAlias = Callable[[Frame], Any]
"""A part of an expression, compiled. Raises CelError, CostExceeded."""


def bind_overloads(function: str, overloads: tuple[Overload, ...], *, is_precompiled: bool = False) -> Apply:
    """Operators look at their values themselves. ``is_precompiled``: a pattern that is constant."""
    if function[0] in "_!-@":
        apply = overloads[0].apply
        assert apply is not None
        return apply
    choices = [
        (tuple(map(_guard, each.arguments)), _item_guards(function, each.arguments), each.apply)
        for each in overloads
    ]

    def call(*arguments: Any) -> Any:
        names = [type_name(each) for each in arguments]
        for guards, items, apply in choices:
            if (
                apply is not None
                and all(guard is None or guard == name for guard, name in zip(guards, names, strict=True))
                and all(_begins_with(arguments[index], wanted) for index, wanted in items)
            ):
                return apply(*arguments)
        raise no_such_overload() if is_precompiled else _refusal(function, names)

    return call


def _refusal(function: str, names: list[str]) -> CelError:
    """Upstream finds it in the dispatcher, by what a value can do, or in the function, each in its words."""
    if function in _OF_TEXTS or (function in _BY_TRAIT and names[0] in _RECEIVERS):
        return no_such_overload()
    if function in _BY_TRAIT:
        return CelError(f"no such overload: {function}")
    if function == "flatten":
        names = [_PARAMETRIC.get(name, name) for name in names]
        return CelError(f"no such overload: {names[0]}.flatten({', '.join(names[1:])})")
    return CelError(f"no such overload: {function}({', '.join(names)})")


def _guard(of: CelType) -> str | None:
    return None if of.kind in (DYN_KIND, PARAM_KIND) else of.name


def _item_guards(function: str, arguments: tuple[CelType, ...]) -> tuple[tuple[int, str], ...]:
    """Guards of lists, whose first item tells their type (cel-go, defaultIsAssignableRuntimeType)."""
    if function == "flatten":  # which takes any list
        return ()
    wanted = ((index, _guard(of.params[0])) for index, of in enumerate(arguments) if of.kind == LIST_KIND)
    return tuple((index, name) for index, name in wanted if name is not None)


def _begins_with(items: Any, wanted: str) -> bool:
    return not len(items) or type_name(next(iter(items))) == wanted


def variable(slot: int) -> Run:
    def run(frame: Frame) -> Any:
        frame.cost += 1
        return frame.values[slot]

    return run


def logical(terms: list[Run], stops: bool) -> Run:
    def run(frame: Frame) -> bool:
        error: CelError | None = None
        for term in terms:
            try:
                found = term(frame)
            except CelError as raised:
                error = error or raised
                continue
            if found is stops:
                return bool(stops)
            if found is not (not stops):
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not stops

    return run


def conditional(condition: Run, first: Run, second: Run) -> Run:
    def run(frame: Frame) -> Any:
        found = condition(frame)
        if found is True:
            return first(frame)
        if found is False:
            return second(frame)
        raise no_such_overload()

    return run


def or_value(first: Run, second: Run, takes_value: bool) -> Run:
    def run(frame: Frame) -> Any:
        found = first(frame)
        if type(found) is not Optional:
            raise no_such_overload()
        if found.value is MISSING:
            return second(frame)
        return found.value if takes_value else found

    return run


def apply_function(
    apply: Callable[..., Any], runs: list[Run], cost: CallCost | None, needs_result: bool = False
) -> Run:
    if len(runs) == 1 and cost is None:
        (only,) = runs

        def unary(frame: Frame) -> Any:
            found = apply(only(frame))
            frame.cost += 1
            return found

        return unary

    def run(frame: Frame) -> Any:
        arguments = [each(frame) for each in runs]
        if not needs_result:
            frame.pay(1 if cost is None else cost(arguments, None))
        found = apply(*arguments)
        if needs_result and cost is not None:
            frame.pay(cost(arguments, found))
        return found

    return run


def evaluate_both(first: Run, second: Run) -> Run:
    """The error of the first of two operands, after the second, which apiservers evaluate all the same."""

    def run(frame: Frame) -> Any:
        try:
            return first(frame)
        except CelError:
            with suppress(CelError):
                second(frame)
            raise

    return run


def panic_on_error(run: Run, text: str) -> Run:
    def panicking(frame: Frame) -> Any:
        try:
            return run(frame)
        except CelError as error:
            raise CelPanic(f"internal error: interface conversion: {text}") from error

    return panicking


def map_maker(runs: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> Any:
        entries = []
        for key, value, is_optional in runs:
            name, found = key(frame), value(frame)
            if is_optional and (found := _open_entry(name, found)) is MISSING:
                continue
            entries.append((name, found))
        frame.pay(30)
        return LiteralMap(entries)

    return run


def message_maker(make: Callable[[dict[str, Any]], Any], runs: list[tuple[str, Run, bool]]) -> Run:
    def run(frame: Frame) -> Any:
        values: dict[str, Any] = {}
        for name, value, is_optional in runs:
            found = value(frame)
            values.pop(name, None)
            if not is_optional or (found := _open_entry(name, found)) is not MISSING:
                values[name] = found
        frame.pay(40)
        return make(values)

    return run


def _open_entry(name: Any, found: Any) -> Any:
    """MISSING for an optional without a value."""
    if type(found) is not Optional:
        raise CelError(f"cannot initialize optional entry '{name}' from non-optional value {found}")
    return found.value


def drop_absent(items: tuple[Any, ...], optional: frozenset[int]) -> tuple[Any, ...]:
    found = []
    for index, item in enumerate(items):
        if index in optional:
            if type(item) is not Optional:
                raise CelError(
                    f"cannot initialize optional list element from non-optional value {type_name(item)}"
                )
            if item.value is MISSING:
                continue
            item = item.value
        found.append(item)
    return tuple(found)

"""The state of one evaluation: variables by slot, and what it has cost; and which overload a call is when its
values are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from specmux_tools.validation.rules.cel.checking.declarations import Apply, Overload
from specmux_tools.validation.rules.cel.checking.types import DYN_KIND, LIST_KIND, PARAM_KIND, CelType
from specmux_tools.validation.rules.cel.values.values import (
    CelError,
    CostExceeded,
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


def bound(function: str, overloads: tuple[Overload, ...], *, is_precompiled: bool = False) -> Apply:
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

"""The cost of a call when it runs (apiserver, pkg/cel/library/cost.go; cel-go,
interpreter/runtimecost.go)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any, Final, TypeAlias

from specmux_tools.validation.rules.cel.values.values import (
    CelPanic,
    MapValue,
    Opaque,
    go_type,
    is_list,
    is_ordered,
    size_of,
)

CallCost: TypeAlias = Callable[[Sequence[Any], Any], int]

PER_CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000
TRAVERSAL: Final = 0.1
PATTERN: Final = 0.25
LIST: Final = 10


NEEDS_RESULT: Final = frozenset(("join", "slice", "lists.range", "reverse"))
"""Functions whose cost is known when they are done; that of others is paid before."""


def call_cost(function: str, overload: str) -> CallCost | None:
    """None for a cost of one. ``overload`` is "" where it is known only with the values."""
    return _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(function) or _DEFAULTS.get(overload)


def equality_cost(left: Any, right: Any) -> int:
    if isinstance(left, Opaque):
        return 1
    return ceil(min(size_of(left), size_of(right)) * TRAVERSAL)


def _traverse(value: Any) -> int:
    """The size of a value with all that is in it."""
    if isinstance(value, str | bytes):
        return int(len(value.encode() if isinstance(value, str) else value) * TRAVERSAL)
    if is_list(value):
        return sum(_traverse(each) for each in value)
    if isinstance(value, MapValue):
        return sum(_traverse(key) + _traverse(value.at_key(key)) for key in value)
    return 1


def _text(times: float = 1.0) -> CallCost:
    return lambda arguments, _: ceil(size_of(arguments[0]) * times * TRAVERSAL)


def _match(arguments: Sequence[Any], _: Any) -> int:
    return ceil((1 + size_of(arguments[0])) * TRAVERSAL) * ceil(size_of(arguments[1]) * PATTERN)


def _validate(arguments: Sequence[Any], _: Any) -> int:
    size = getattr(arguments[0], "pattern_size", 0)  # dyn may be anything
    return ceil((1 + size_of(arguments[1])) * TRAVERSAL) * ceil(size * PATTERN)


def _find_contained(parses: bool, masks: bool) -> CallCost:
    def cost(arguments: Sequence[Any], _: Any) -> int:
        size = size_of(arguments[0])
        found = ceil(2 * size * TRAVERSAL)
        if masks:
            found += ceil(size * TRAVERSAL) + 1
        return found + (ceil(size_of(arguments[1]) * TRAVERSAL) if parses else 0)

    return cost


def _sets(factor: int) -> CallCost:
    return lambda arguments, _: 1 + size_of(arguments[0]) * size_of(arguments[1]) * factor


def _flatten(arguments: Sequence[Any], _: Any) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    return size_of(arguments[0]) * depth + 1 + LIST


def _compare(index: int) -> CallCost:
    def cost(arguments: Sequence[Any], _: Any) -> int:
        items = arguments[index]
        if not is_list(items):
            method = "Contains" if is_ordered(items) and type(items) is not bool else "Add"
            words = f"{go_type(items)} is not traits.Lister: missing method {method}"
            raise CelPanic(f"internal error: interface conversion: {words}")
        size = len(items)
        is_text = size > 0 and isinstance(next(iter(items)), str | bytes)
        return int(size * size * (2.0 + (TRAVERSAL if is_text else 0))) + 1 + LIST

    return cost


ORDERS_OF_TEXTS: Final = tuple(
    f"{order}_{kind}"
    for order in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)
COMPARABLE: Final = (
    *("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp"),
    *("string", "bytes"),
)
NO_LIST: Final = "*types.Err is not traits.Lister: missing method Add"
UNMETERED: Final[dict[str, tuple[int, str]]] = {
    "list_distinct": (0, NO_LIST),
    **{f"list_{name}_sort": (0, NO_LIST) for name in COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": (1, NO_LIST) for name in COMPARABLE},
    "list_flatten_int": (1, "ref.Val is *types.Err, not types.Int"),
}
"""Calls whose meter panics where that argument is an error, and its words (cel-go, ext/lists.go)."""
_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **dict.fromkeys(
        ("list_slice", "lists_range", "list_reverse"), lambda _, result: size_of(result) + 1 + LIST
    ),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": _compare(0),
    **dict.fromkeys((f"list_{name}_sort" for name in COMPARABLE), _compare(0)),
    **dict.fromkeys((f"list_{name}_sortByAssociatedKeys" for name in COMPARABLE), _compare(1)),
    "cidr_ip": lambda *_: 1,
    "cidr_contains_ip_string": _find_contained(True, False),
    "cidr_contains_ip_ip": _find_contained(False, False),
    "cidr_contains_cidr_string": _find_contained(True, True),
    "cidr_contains_cidr": _find_contained(False, True),
}
_BY_FUNCTION: Final[dict[str, CallCost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda arguments, _: _traverse(arguments[0]),
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _text()),
    **dict.fromkeys(("replace", "split"), _text(2)),
    "join": lambda _, result: ceil(size_of(result) * 2 * TRAVERSAL),
    **dict.fromkeys(("find", "findAll"), _match),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip"), _text()),
    "ip.isCanonical": _text(2),
    "containsIP": _find_contained(False, False),
    "containsCIDR": _find_contained(False, True),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _text()),
    "validate": _validate,
}
_DEFAULTS: Final[dict[str, CallCost]] = {
    **dict.fromkeys(
        (
            *("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"),
            *("strings_quote", "string_format"),
        ),
        _text(),
    ),
    "in_list": lambda arguments, _: size_of(arguments[1]),
    **dict.fromkeys(ORDERS_OF_TEXTS, lambda arguments, _: ceil(min(map(size_of, arguments)) * TRAVERSAL)),
    **dict.fromkeys(
        ("add_string", "add_bytes"), lambda arguments, _: ceil(sum(map(size_of, arguments)) * TRAVERSAL)
    ),
    "matches_string": _match,
    "contains_string": lambda arguments, _: prod(ceil(size_of(each) * TRAVERSAL) for each in arguments),
}

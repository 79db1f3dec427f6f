"""Lists: Kubernetes' library, cel-go's, and sets (apiserver, pkg/cel/library/lists.go; cel-go, ext)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key, reduce
from typing import Any, Final

from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    param,
)
from specmux_tools.validation.rules.cel.libraries.standard import is_in
from specmux_tools.validation.rules.cel.parsing import macros
from specmux_tools.validation.rules.cel.values.arithmetic import add
from specmux_tools.validation.rules.cel.values.values import (
    CelError,
    CostExceeded,
    Duration,
    UInt,
    compare,
    is_list,
    is_ordered,
    is_same,
    no_such_overload,
    type_name,
)

_A, _T = param("A"), param("T")
_LIST: Final = list_of(_T)
_COMPARABLE: Final = tuple(
    (of, list_of(of)) for of in (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
)
"""Types whose values are ordered, and lists of them."""
_ZEROES: Final[tuple[tuple[CelType, Any], ...]] = (
    (INT, 0),
    (UINT, UInt(0)),
    (DOUBLE, 0.0),
    (DURATION, Duration(0)),
)
MOST_RANGE: Final = 1_000_000
"""The limit of ``lists.range``, from 1.37 on, before what the limit of one call allows."""


def _is_sorted(items: Any) -> bool:
    before: list[Any] = []
    for item in items:
        if not is_ordered(item):
            raise no_such_overload()
        if before and _compare(before.pop(), item) > 0:
            return False
        before.append(item)
    return True


def _compare(left: Any, right: Any) -> int:
    """The order of two values; 0 for an error, as upstream: values of two types, as of int-or-string."""
    try:
        return compare(left, right)
    except CelError:
        return 0


def _sum(zero: Any) -> Callable[[Any], Any]:
    return lambda items: reduce(add, items, zero)


def _extreme(name: str, sign: int) -> Callable[[Any], Any]:
    def find(items: Any) -> Any:
        found: Any = None
        is_first = True
        for item in items:
            if not is_ordered(item):
                raise no_such_overload()
            if is_first or _compare(found, item) == sign:
                found, is_first = item, False
        if is_first:
            raise CelError(f"{name} called on empty list")
        return found

    return find


def _index_of(items: Any, wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if is_same(item, wanted)), -1)


def _last_index_of(items: Any, wanted: Any) -> int:
    return max((index for index, item in enumerate(items) if is_same(item, wanted)), default=-1)


def _includes(target: Any, wanted: Any) -> bool:
    return any(is_same(item, wanted) for item in target) if is_list(target) else is_same(target, wanted)


def _each(name: str, apply: Callable[[Any], Any], result: CelType | None = None) -> tuple[Overload, ...]:
    return tuple(member(f"list_{of.kind}_{name}", (items,), result or of, apply) for of, items in _COMPARABLE)


LISTS: Final = CelLibrary(
    {
        "isSorted": _each("is_sorted_bool", _is_sorted, BOOL),
        "sum": tuple(
            member(f"list_{of.kind}_sum_{of.kind}", (list_of(of),), of, _sum(zero)) for of, zero in _ZEROES
        ),
        "max": _each("max", _extreme("max", -1)),
        "min": _each("min", _extreme("min", 1)),
        "indexOf": (member("list_a_index_of_int", (list_of(_A), _A), INT, _index_of),),
        "lastIndexOf": (member("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of),),
    }
)
INCLUDES: Final = CelLibrary({"includes": (member("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes),)})


def _slice(items: Any, start: int, end: int) -> tuple[Any, ...]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return tuple(items)[start:end]


def _flatten(items: Any, depth: int = 1) -> tuple[Any, ...]:
    if depth < 0:
        raise CelError("level must be non-negative")
    return tuple(_flatten_items(items, depth))


def _flatten_items(items: Any, depth: int) -> Iterator[Any]:
    for item in items:
        if depth > 0 and is_list(item):
            yield from _flatten_items(item, depth - 1)
        else:
            yield item


def _sort_by(items: Any, keys: Any) -> Any:
    if not is_list(items):  # of type dyn
        raise CelError("no such overload: @sortByAssociatedKeys")
    if len(items) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not len(items):
        return items
    paired = list(zip(keys, items, strict=True))
    kind = type_name(paired[0][0])
    if not is_ordered(paired[0][0]):
        raise CelError("list elements must be comparable")
    if any(type_name(key) != kind for key, _ in paired):
        raise CelError("list elements must have the same type")
    order = cmp_to_key(_order)
    paired.sort(key=lambda pair: order(pair[0]))
    return tuple(item for _, item in paired)


def _order(left: Any, right: Any) -> int:
    """No number is beside NaN as it was."""
    return 0 if left != left or right != right else compare(left, right)


def _range(count: int) -> tuple[int, ...]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > MOST_RANGE:
        raise CelError(f"lists.range: size {count} exceeds maximum allowed ({MOST_RANGE})")
    return tuple(range(count))


def _unlimited_range(count: int) -> tuple[int, ...]:
    if count > MOST_RANGE:
        raise CostExceeded
    return tuple(range(count))


def _ranges(make: Callable[[int], tuple[int, ...]]) -> dict[str, tuple[Overload, ...]]:
    return {"lists.range": (Overload("lists_range", (INT,), list_of(INT), make),)}


def _distinct(items: Any) -> Any:
    if not len(items):
        return items
    found: list[Any] = []
    for item in items:
        if not any(is_same(item, each) for each in found):
            found.append(item)
    return tuple(found)


EXTENDED_LISTS: Final = CelLibrary(
    {
        "slice": (member("list_slice", (_LIST, INT, INT), _LIST, _slice),),
        "flatten": (
            member("list_flatten", (list_of(_LIST),), _LIST, _flatten),
            member("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten),
        ),
        "sort": tuple(
            member(f"list_{of.name}_sort", (items,), items, lambda items: _sort_by(items, items))
            for of, items in _COMPARABLE
        ),
        "@sortByAssociatedKeys": tuple(
            member(f"list_{of.name}_sortByAssociatedKeys", (_LIST, items), _LIST, _sort_by)
            for of, items in _COMPARABLE
        ),
        "reverse": (member("list_reverse", (_LIST,), _LIST, lambda items: tuple(items)[::-1]),),
        "distinct": (member("list_distinct", (_LIST,), _LIST, _distinct),),
        **_ranges(_unlimited_range),
    },
    {("sortBy", 2, True): macros.sort_by},
)


RANGE_SIZES: Final = CelLibrary(_ranges(_range))
"""Ranges as cel-go 0.29 and newer bound them (ext/lists.go)."""


def _contains(items: Any, others: Any) -> bool:
    return all(is_in(other, items) for other in others)


SETS: Final = CelLibrary(
    {
        "sets.contains": (Overload("list_sets_contains_list", (_LIST, _LIST), BOOL, _contains),),
        "sets.equivalent": (
            Overload(
                "list_sets_equivalent_list",
                (_LIST, _LIST),
                BOOL,
                lambda left, right: _contains(left, right) and _contains(right, left),
            ),
        ),
        "sets.intersects": (
            Overload(
                "list_sets_intersects_list",
                (_LIST, _LIST),
                BOOL,
                lambda left, right: any(is_in(item, right) for item in left),
            ),
        ),
    }
)

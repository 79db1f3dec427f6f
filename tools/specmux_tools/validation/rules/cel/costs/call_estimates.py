"""The most that a call may cost and how large its result may be, by the sizes of its arguments (apiserver,
pkg/cel/library/cost.go; cel-go, checker/cost.go and ext). Ranges of sizes and costs stop at 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Final, TypeAlias

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.types import CelType
from specmux_tools.validation.rules.cel.costs.metering import (
    COMPARABLE,
    LIST,
    ORDERS_OF_TEXTS,
    PATTERN,
    TRAVERSAL,
)
from specmux_tools.validation.rules.cel.values.values import MISSING

MOST: Final = 2**64 - 1
_MOST_FORMAT: Final = 64
_NAME_PATTERN: Final = 128


@dataclass(frozen=True, slots=True)
class Range:
    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Range:
        return Range(_scale(self.least, factor), _scale(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def exact_range(value: int) -> Range:
    return Range(value, value)


def _scale(value: int, factor: float) -> int:
    scaled = float(value) * factor
    return MOST if scaled >= 2.0**64 else ceil(scaled)


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MOST)
EMPTY_UNION: Final = Range(MOST, 0)
"""The start of a union of several."""


@dataclass(frozen=True, slots=True)
class SizedPart:
    """An argument: its type, its size where that is known, of a list its items', of a literal its value."""

    type: CelType
    size: Range | None
    item_size: Range | None = None
    literal: Any = MISSING

    @property
    def sized(self) -> Range:
        return UNKNOWN if self.size is None else self.size


@dataclass(frozen=True, slots=True)
class CallEstimate:
    cost: Range
    size: Range | None = None
    """The size of the result."""


Parts: TypeAlias = Sequence[SizedPart]
"""The receiver, where there is one, then the arguments."""
Estimator: TypeAlias = Callable[[Parts], CallEstimate]


def call_estimate(
    function: str, overload: str, parts: Parts, *, is_member: bool, bounds_equality: bool = True
) -> CallEstimate:
    """Without the cost of the arguments. ``bounds_equality``: of values of libraries."""
    estimator = _BY_OVERLOAD.get(overload)
    if estimator is None and (is_member, function) not in _ONLY:
        estimator = _BY_FUNCTION.get(function) or _DEFAULTS.get(overload)
    if overload == "equals" and (known := _equality(parts)) is not None:
        return CallEstimate(known if bounds_equality else Range(1, MOST).by(TRAVERSAL))
    return CallEstimate(ONE) if estimator is None else estimator(parts)


def _equality(parts: Parts) -> Range | None:
    """The cost of comparing values of libraries."""
    left, right = parts
    if left.type != right.type:
        return None
    match left.type.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return ONE
        case "kubernetes.NamedFormat":
            return Range(1, _MOST_FORMAT).by(TRAVERSAL)
        case "kubernetes.URL":
            return Range(1, 1 if right.size is None else right.size.most).by(TRAVERSAL)
    return None


def _text(times: float = 1, *, keeps_size: bool = False) -> Estimator:
    def estimate(parts: Parts) -> CallEstimate:
        size = parts[0].sized
        return CallEstimate(size.by(times * TRAVERSAL), size if keeps_size else None)

    return estimate


def _traverse(parts: Parts) -> CallEstimate:
    """A list's items, each with its text; or a text. As upstream, what else has types in it counts as a
    list of the first of them."""
    target = parts[0]
    if not target.type.params:
        return CallEstimate(target.sized.by(TRAVERSAL))
    cost = ONE
    if target.type.params[0].kind in ("string", "bytes"):
        cost = cost.plus((target.item_size or UNKNOWN).by(TRAVERSAL))
    return CallEstimate(target.sized.times(cost))


def _includes(parts: Parts) -> CallEstimate:
    return _traverse(parts) if parts[0].type.params else CallEstimate(parts[0].sized.times(ONE))


def _replace(parts: Parts) -> CallEstimate:
    size, old, new = (part.sized for part in parts[:3])
    most_count = most_kept = 0
    if old.least == 0:
        most_count, most_kept = min(size.most + 1, MOST), size.most
    elif new.most <= old.least:
        most_kept = size.most
    else:
        most_count = ceil(float(size.most) / float(old.least))
    least_count = least_kept = 0
    if old.most == 0:
        least_count, least_kept = min(size.least + 1, MOST), size.least
    elif old.most <= new.least:
        least_kept = size.least
    else:
        least_count = ceil(float(size.least) / float(old.most))
    result = Range(least_count, min(most_count, MOST)).times(new).plus(Range(least_kept, most_kept))
    return CallEstimate(size.by(2 * TRAVERSAL), result)


def _split(parts: Parts) -> CallEstimate:
    size = parts[0].sized
    most = size.most
    if len(parts) > 2 and type(parts[2].literal) is int:
        most = parts[2].literal % 2**64
    return CallEstimate(size.by(2 * TRAVERSAL), Range(0, most))


def _join(parts: Parts) -> CallEstimate:
    count = parts[0].sized
    size = NOTHING
    if parts[0].type.params:
        size = count.times(parts[0].item_size or UNKNOWN)
    if len(parts) > 1:
        between = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(parts[1].sized.times(between))
    return CallEstimate(size.by(TRAVERSAL), size)


def _match(*, has_result: bool) -> Estimator:
    def estimate(parts: Parts) -> CallEstimate:
        size = parts[0].sized
        cost = size.plus(ONE).by(TRAVERSAL).times(parts[1].sized.by(PATTERN))
        return CallEstimate(cost, Range(0, size.most) if has_result else None)

    return estimate


def _find_contained(*, parses: bool, masks: bool) -> Estimator:
    def estimate(parts: Parts) -> CallEstimate:
        size = Range(4, 16)
        cost = size.plus(size).by(TRAVERSAL)
        if masks:
            cost = cost.plus(size.by(TRAVERSAL)).plus(ONE)
        return CallEstimate(cost.plus(parts[1].sized.by(TRAVERSAL)) if parses else cost)

    return estimate


def _encode(parts: Parts) -> CallEstimate:
    size = parts[0].sized
    return CallEstimate(size.by(TRAVERSAL), Range(size.least, size.most * 4 % 2**64))


def _decode(parts: Parts) -> CallEstimate:
    size = parts[0].sized
    return CallEstimate(size.by(TRAVERSAL), Range(size.least // 4, size.most))


def _quote(parts: Parts) -> CallEstimate:
    size = parts[0].sized
    return CallEstimate(size.by(TRAVERSAL), Range((size.least + 2) % 2**64, (size.most * 2 + 2) % 2**64))


def _add(parts: Parts) -> CallEstimate:
    size = parts[0].sized.plus(parts[1].sized)
    return CallEstimate(size.by(TRAVERSAL), size)


def _smaller(parts: Parts) -> CallEstimate:
    most = min(parts[0].sized.most, parts[1].sized.most)
    return CallEstimate(Range(1 if most > 0 else 0, most).by(TRAVERSAL))


def _estimate_list(size: Range, factor: float = 1) -> CallEstimate:
    return CallEstimate(size.by(factor).plus(ONE).plus(exact_range(LIST)), size)


def _number(part: SizedPart, default: int) -> int:
    return max(part.literal, 0) if type(part.literal) is int else default


def _slice(parts: Parts) -> CallEstimate:
    start, end = _number(parts[1], 0), _number(parts[2], parts[0].sized.most)
    return _estimate_list(exact_range((end - start) % 2**64))


def _flatten(parts: Parts) -> CallEstimate:
    return _estimate_list(parts[0].sized, float(_number(parts[1], MOST)) if len(parts) == 2 else 1)


def _compare(index: int, factor: float) -> Estimator:
    return lambda parts: _estimate_list(parts[index].sized.times(parts[index].sized), factor)


def _sets(factor: int) -> Estimator:
    return lambda parts: CallEstimate(parts[0].sized.times(parts[1].sized).by(factor).plus(ONE))


def _factor(name: str) -> float:
    return 2.0 + TRAVERSAL if name in ("string", "bytes") else 2.0


_ONLY: Final = frozenset(
    (False, name)
    for name in (
        *("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes", "lowerAscii", "upperAscii"),
        *("substring", "trim", "replace", "split", "join", "find", "findAll"),
    )
) | frozenset(((True, "ip"),))
"""Functions that are estimated as members alone, and the other way round."""
_BY_OVERLOAD: Final[dict[str, Estimator]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": lambda parts: _estimate_list(exact_range(_number(parts[0], MOST))),
    "list_reverse": lambda parts: _estimate_list(parts[0].sized),
    "list_distinct": _compare(0, 2.0),
    **{f"list_{name}_sort": _compare(0, _factor(name)) for name in COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": _compare(1, _factor(name)) for name in COMPARABLE},
    "cidr_contains_ip_string": _find_contained(parses=True, masks=False),
    "cidr_contains_cidr_string": _find_contained(parses=True, masks=True),
}
_BY_FUNCTION: Final[dict[str, Estimator]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traverse),
    "includes": _includes,
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _text(keeps_size=True)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _match(has_result=True)),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _text()
    ),
    "ip.isCanonical": _text(2),
    "containsIP": _find_contained(parses=False, masks=False),
    "containsCIDR": _find_contained(parses=False, masks=True),
    "validate": lambda parts: CallEstimate(parts[1].sized.by(TRAVERSAL).by(_NAME_PATTERN * PATTERN)),
}
_DEFAULTS: Final[dict[str, Estimator]] = {
    "string_format": _text(),
    "string_to_bytes": _encode,
    "bytes_to_string": _decode,
    "strings_quote": _quote,
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string"), lambda parts: CallEstimate(parts[1].sized.by(TRAVERSAL))
    ),
    "in_list": lambda parts: CallEstimate(parts[1].sized.by(1)),
    "matches_string": _match(has_result=False),
    "contains_string": lambda parts: CallEstimate(
        parts[0].sized.by(TRAVERSAL).times(parts[1].sized.by(TRAVERSAL))
    ),
    **dict.fromkeys(("add_string", "add_bytes"), _add),
    "add_list": lambda parts: CallEstimate(ONE, parts[0].sized.plus(parts[1].sized)),
    **dict.fromkeys(("equals", "not_equals", *ORDERS_OF_TEXTS), _smaller),
}

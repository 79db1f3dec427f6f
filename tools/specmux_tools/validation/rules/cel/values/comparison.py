"""Equality and order of values, over types of numbers too (cel-go, common/types/compare.go), and maps that an
expression makes, which find their keys by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    UINT_MAX,
    CelError,
    CelPanic,
    Duration,
    ListValue,
    MapValue,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    no_such_overload,
    shown,
)

_NUMBERS: Final = frozenset((int, UInt, float))
_PLAIN: Final = frozenset((str, bytes, bool, type(None), Duration, TypeValue))
_ORDERED: Final = frozenset((str, bytes, bool))


def equal(left: Any, right: Any) -> bool:
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return other in _NUMBERS and _number_order(left, right) == 0
    if kind in _PLAIN:
        return kind is other and bool(left == right)
    if right is None:
        return False
    if kind is tuple:
        return _same_items(left, right)
    if isinstance(left, ListValue | MapValue | Opaque):
        return left.same(right)
    if kind is Timestamp:
        return other is Timestamp and left.nanos == right.nanos
    if kind is Optional:
        return other is Optional and _same_optional(left, right)
    return False


def is_same(left: Any, right: Any) -> bool:
    """An error is no equality."""
    try:
        return equal(left, right)
    except CelError:
        return False


def _same_items(left: tuple[Any, ...], right: Any) -> bool:
    if not isinstance(right, tuple | ListValue) or len(left) != len(right):
        return False
    return all(map(equal, left, right))


def _same_optional(left: Optional, right: Optional) -> bool:
    if left.value is right.value:
        return True
    return left.value is not MISSING and right.value is not MISSING and equal(left.value, right.value)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. Raises CelError for what has no order."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        order = _number_order(left, right)
        if order is None:
            raise CelError("NaN values cannot be ordered")
        return order
    if kind is not other:
        raise no_such_overload()
    if kind in _ORDERED:
        return int(left > right) - int(left < right)
    if kind is Timestamp or kind is Duration:
        return int(left.nanos > right.nanos) - int(left.nanos < right.nanos)
    raise no_such_overload()


def is_ordered(value: Any) -> bool:
    return type(value) in _NUMBERS or type(value) in _ORDERED or type(value) in (Timestamp, Duration)


def _number_order(left: Any, right: Any) -> int | None:
    """None with NaN. An integer beside a float is made one, as Go does it."""
    if type(left) is float or type(right) is float:
        if left != left or right != right:
            return None
        if type(left) is not float:
            order = _number_order(right, left)
            return None if order is None else -order
        if type(right) is UInt:
            if left < 0:
                return -1
            if left > UINT_MAX:
                return 1
        elif type(right) is int:
            if left < INT_MIN:
                return -1
            if left > INT_MAX:
                return 1
        right = float(right)
    return int(left > right) - int(left < right)


class LiteralMap(MapValue):
    """A map that an expression made. Keys of different types differ, but an int finds a uint, a uint an int,
    and a double both (cel-go, types/map.go, refValMapAccessor)."""

    __slots__ = ("_entries",)
    go_name = "*types.baseMap"

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries = {_key(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def at_key(self, key: Any) -> Any:
        if type(key) is bytes and self._entries:
            raise CelPanic("internal error: runtime error: hash of unhashable type types.Bytes")
        for each in (key, *_equals(key)):
            found = self._entries.get(_key(each))
            if found is not None:
                return found[1]
        return MISSING

    def insert(self, key: Any, value: Any) -> None:
        """Add a member to a map that nobody else has yet. Raises CelError for a key that is there."""
        if (written := _key(key)) in self._entries:
            raise CelError(f"insert failed: key {shown(key)} already exists")
        self._entries[written] = (key, value)

    def same(self, other: Any) -> bool:
        if not isinstance(other, MapValue) or len(other) != len(self):
            return False
        return all(
            (theirs := other.at_key(key)) is not MISSING and equal(value, theirs)
            for key, value in self._entries.values()
        )

    def native(self) -> Any:
        return self


def _key(key: Any) -> Any:
    return key if type(key) is str else (type(key), key)


def _equals(key: Any) -> Iterator[Any]:
    """Keys of other types that the key finds, in order."""
    if type(key) is float and key.is_integer():
        key = int(key)
        if INT_MIN <= key <= INT_MAX:
            yield key
    elif type(key) is UInt:
        if key <= INT_MAX:
            yield int(key)
        return
    if type(key) is int and 0 <= key <= UINT_MAX:
        yield UInt(key)

"""Values of CEL. Null, bool, int, float, str, bytes are Python's; a tuple is a list that an expression made.
Lists and maps of documents are subclasses of ListValue and MapValue (``rules.data``).

Equality and order are over types of numbers, too (cel-go, common/types/compare.go), and maps that an
expression makes find their keys by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1
NANOS: Final = 1_000_000_000


class CelError(Exception):
    """An error of evaluation, in the words of cel-go. ``&&``, ``||`` and loops over them absorb it."""

    cost = 0
    """Cost of the evaluation that it ended."""


class CelPanic(Exception):
    """An error that ends the evaluation in cel-go, which panics: nothing absorbs that."""


class CostExceeded(Exception):
    """The limit of one call is used up; nothing absorbs that."""


class UndecidedRule(Exception):
    """A result that this evaluator cannot tell; nothing absorbs it."""


MISSING: Final[Any] = object()
"""No value for a key."""


class UInt(int):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """``offset``, in seconds, is of the zone that it is written in."""

    nanos: int
    """Nanoseconds since 1970."""
    offset: int = 0

    @property
    def seconds(self) -> int:
        return self.nanos // NANOS


@dataclass(frozen=True, slots=True)
class Optional:
    value: Any = MISSING

    def get(self) -> Any:
        if self.value is MISSING:
            raise CelError("optional.none() dereference")
        return self.value


NONE: Final = Optional()


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


class Opaque:
    """A value of a library: a quantity, an address. Subclasses are frozen dataclasses."""

    __slots__ = ()
    type_name = "unknown"

    def same(self, other: Any) -> bool:
        """Raises CelError for a value of another type, as what each library compares with."""
        if type(other) is not type(self):
            raise no_such_overload()
        return bool(self == other)


class Collection:
    """A list, or a map with its keys. Subclasses that are no literals are of a document."""

    __slots__ = ()
    go_name = ""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def same(self, other: Any) -> bool:
        raise NotImplementedError

    def native(self) -> Any:
        raise NotImplementedError


class ListValue(Collection):
    __slots__ = ()
    go_name = "*common.unstructuredList"

    def item(self, index: int) -> Any:
        raise NotImplementedError

    def plus(self, other: Iterable[Any]) -> Any:
        raise NotImplementedError


class MapValue(Collection):
    __slots__ = ()
    go_name = "*common.unstructuredMap"

    def at_key(self, key: Any) -> Any:
        """MISSING where there is none."""
        raise NotImplementedError

    def same(self, other: Any) -> bool:
        return (
            isinstance(other, MapValue)
            and len(other) == len(self)
            and all(
                (theirs := other.at_key(key)) is not MISSING and equal(self.at_key(key), theirs)
                for key in self
            )
        )


class DocumentMap(MapValue):
    """An object of a document."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.raw)

    def native(self) -> Any:
        return self.raw


TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    tuple: "list",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
}


_MOST_DIGITS: Final = 19
"""Digits of a number that may have 64 bits."""
MOST_TEXT: Final = 16 * 1024 * 1024
"""Characters of a text that a function may make: no limit of cost covers these."""


def bounded_int(digits: str) -> int | None:
    """The number that decimal digits write; None for one far beyond 64 bits."""
    digits = digits.lstrip("0")
    return None if len(digits) > _MOST_DIGITS + 1 else int(digits or "0")


def type_name(value: Any) -> str:
    found = TYPE_NAMES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, ListValue):
        return "list"
    if isinstance(value, MapValue):
        return "map"
    return str(value.type_name)


def is_list(value: Any) -> bool:
    return type(value) is tuple or isinstance(value, ListValue)


def native(value: Any) -> Any:
    """The value as a document has it; the result of an expression as it is."""
    return value.native() if isinstance(value, Collection) else value


def print_value(value: Any) -> str:
    """Print the value as Go does in a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        from specmux_converters.go.text import general_text

        return general_text(value)
    return str(value)


def size_of(value: Any) -> int:
    """The size that cost counts: the length of texts, lists and maps, one for all else."""
    try:
        return len(value)
    except TypeError:
        return size_of(value.value) if type(value) is Optional and value.value is not MISSING else 1


_GO_TYPES: Final = {
    "list": "*types.baseList",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "kubernetes.NamedFormat": "cel.Format",
}


def go_type(value: Any) -> str:
    """The name of its type in Go, which texts show."""
    if isinstance(value, Collection):
        return value.go_name
    if getattr(value, "is_computed", False):  # a sum of quantities is a pointer to one
        return f"*cel.{type_name(value).rpartition('.')[2]}"
    name = type_name(value)
    package, _, bare = name.rpartition(".")
    return _GO_TYPES.get(name) or (f"cel.{bare}" if package else f"types.{name.title()}")


def takes(read: Callable[..., Any]) -> Callable[..., bool]:
    """Whether a function has a value for its arguments."""

    def has_value(*arguments: Any) -> bool:
        try:
            read(*arguments)
        except CelError:
            return False
        return True

    return has_value


def no_such_overload() -> CelError:
    return CelError("no such overload")


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
    if isinstance(left, Collection | Opaque):
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
            raise CelError(f"insert failed: key {print_value(key)} already exists")
        self._entries[written] = (key, value)

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

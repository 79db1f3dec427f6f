"""Values of CEL. Null, bool, int, float, str, bytes are Python's; a tuple is a list that an expression made.

Lists and maps of documents are subclasses of ListValue and MapValue (``rules.data``).
"""

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


class _Missing:
    __slots__ = ()


MISSING: Final[Any] = _Missing()
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
    """Since 1970."""
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


class ListValue:
    """A list of a document."""

    __slots__ = ()
    go_name = "*common.unstructuredList"

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def item(self, index: int) -> Any:
        raise NotImplementedError

    def same(self, other: Any) -> bool:
        raise NotImplementedError

    def plus(self, other: Iterable[Any]) -> Any:
        raise NotImplementedError

    def native(self) -> Any:
        raise NotImplementedError


class MapValue:
    __slots__ = ()
    go_name = "*common.unstructuredMap"

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        """Iterate over its keys."""
        raise NotImplementedError

    def at_key(self, key: Any) -> Any:
        """MISSING where there is none."""
        raise NotImplementedError

    def same(self, other: Any) -> bool:
        raise NotImplementedError

    def native(self) -> Any:
        raise NotImplementedError


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
    return value.native() if isinstance(value, ListValue | MapValue) else value


def shown(value: Any) -> str:
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
    if isinstance(value, ListValue | MapValue):
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

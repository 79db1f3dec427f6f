"""Selection and indexing, plain and optional: a chain from a variable or a value (cel-go, attributes.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.evaluation.closures import Frame, Run
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    NONE,
    CelError,
    DocumentMap,
    ListValue,
    MapValue,
    Optional,
    UInt,
    go_type,
    native,
    print_value,
    type_name,
)


@dataclass(frozen=True, slots=True)
class Qualifier:
    key: Any = None
    run: Run | None = None
    """Select by a key that is computed."""
    is_optional: bool = False
    is_test: bool = False


_KEYS: Final = frozenset((str, int, UInt, bool, float))


def key_of(value: Any) -> Any:
    """The value as a key. Raises CelError for a type of no key (interpreter/attributes.go, newQualifier)."""
    if type(value) not in _KEYS:
        raise CelError(f"invalid qualifier type: {go_type(value)}")
    return value


def chain(root: Run, qualifiers: Sequence[Qualifier], opens_typed: bool) -> Run:
    cost = len(qualifiers) + 1 - (1 if qualifiers[-1].is_test else 0)
    is_plain = all(each.run is None and not each.is_optional and not each.is_test for each in qualifiers)
    keys = tuple(each.key for each in qualifiers)

    def plain(frame: Frame) -> Any:
        value = root(frame)
        frame.cost += cost
        if type(value) is Optional:
            return _follow(frame, value, qualifiers, opens_typed)
        for key in keys:
            if isinstance(value, MapValue):
                found = value.at_key(key)
                if found is MISSING:
                    raise CelError(f"no such key: {print_value(key)}")
                value = found
            else:
                value = _require(value, key)
        return value

    def followed(frame: Frame) -> Any:
        value = root(frame)
        frame.cost += cost
        return _follow(frame, value, qualifiers, opens_typed)

    return plain if is_plain else followed


def _follow(frame: Frame, value: Any, qualifiers: Sequence[Qualifier], opens_typed: bool) -> Any:
    is_optional = type(value) is Optional
    if is_optional:
        if value.value is MISSING:
            frame.cost -= len(qualifiers)
            return False if qualifiers[-1].is_test else value
        # Without types names, texts and lists are as the document has them.
        value = value.value if opens_typed else adapt(native(value.value))
    for index, qualifier in enumerate(qualifiers):
        key = qualifier.key if qualifier.run is None else key_of(qualifier.run(frame))
        is_optional = is_optional or qualifier.is_optional
        if is_optional or qualifier.is_test:
            value = find_part(value, key)
            if qualifier.is_test:
                return value is not MISSING
            if value is MISSING:
                # What is not there costs nothing, nor what would follow it.
                frame.cost -= len(qualifiers) - index
                return False if qualifiers[-1].is_test else NONE
        else:
            value = _require(value, key)
    return Optional(value) if is_optional else value


def find_part(value: Any, key: Any) -> Any:
    """MISSING where there is none. Raises CelError for a key of a wrong type."""
    if isinstance(value, MapValue):
        return value.at_key(key)
    if type(value) is tuple or isinstance(value, ListValue):
        index = _index(key)
        if not 0 <= index < len(value):
            return MISSING
        if type(key) is not int and isinstance(value, ListValue):
            raise CelError(f"unsupported index: {print_value(key)}")
        return at(value, index)
    return MISSING


def _require(value: Any, key: Any) -> Any:
    found = find_part(value, key)
    if found is MISSING:
        is_list = type(value) is tuple or isinstance(value, ListValue)
        raise CelError(f"{'index out of bounds' if is_list else 'no such key'}: {print_value(key)}")
    return found


def at(value: Any, index: int) -> Any:
    return value[index] if type(value) is tuple else value.item(index)


def _index(key: Any) -> int:
    if type(key) is int or type(key) is UInt:
        return key
    if type(key) is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {print_value(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


class NativeMap(DocumentMap):
    """An object of a document without its schema."""

    __slots__ = ()

    def at_key(self, key: Any) -> Any:
        return adapt(self.raw[key]) if type(key) is str and key in self.raw else MISSING


def adapt(value: Any) -> Any:
    """A value of a document as one of CEL, without its schema."""
    if type(value) is dict:
        return NativeMap(value)
    if type(value) is list:
        return tuple(map(adapt, value))
    if isinstance(value, float):
        return float(value)
    return value

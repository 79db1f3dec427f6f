"""Values of documents as values of CEL, by their schema (apiserver, pkg/cel/common/valuesunstructured.go).

They are read when an expression asks for them. What does not fit its schema is an error only then.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_tools.validation.decoding.type_meta import go_type_of
from specmux_tools.validation.rules.cel.libraries.times import any_timestamp, read_duration
from specmux_tools.validation.rules.cel.values.values import (
    MISSING,
    CelError,
    DocumentMap,
    Duration,
    ListValue,
    MapValue,
    Opaque,
    Timestamp,
    equal,
    native,
    no_such_overload,
)
from specmux_tools.validation.rules.rule_tree import RuleNode, escaped_name, unescaped_name
from specmux_tools.validation.schema.formats import FORMATS, read_long_duration
from specmux_tools.validation.schema.scalars import base64_fault

Convert = Callable[[Any], Any]
_FROM_URL: Final = str.maketrans("-_+/", "+/!!")


def converter(node: RuleNode) -> Convert:
    """Makes a value of a document one of CEL, or raises CelError. Kept with the node."""
    found: Convert | None = node.__dict__.get("convert")
    if found is None:
        found = node.__dict__["convert"] = _nullable(node, _converter(node))
    return found


def _nullable(node: RuleNode, convert: Convert) -> Convert:
    def checked(raw: Any) -> Any:
        if raw is not None:
            return convert(raw)
        if node.is_nullable:
            return None
        raise CelError("invalid data, got null for schema with nullable=false")

    return checked


def _converter(node: RuleNode) -> Convert:
    if node.is_int_or_string:
        return _int_or_string
    match "object" if node.is_resource else node.kind:
        case "object":
            return _object(node)
        case "array":
            return _array(node)
        case "string":
            return _TEXTS.get(node.form, _text)
        case "number":
            return _number
        case "integer":
            return _integer
        case "boolean":
            return _boolean
    if node.preserves:
        return UnknownValue
    fault = (
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got "
    )
    return _refuse_all(fault + node.kind)


def _refuse_all(fault: str) -> Convert:
    def refuse(_: Any) -> Any:
        raise CelError(fault)

    return refuse


def _got(wanted: str, raw: Any) -> CelError:
    return CelError(f"invalid data, expected {wanted}, got {go_type_of(raw)}")


def _int_or_string(raw: Any) -> Any:
    if isinstance(raw, str):
        return str(raw)
    if type(raw) is int:
        return raw
    raise CelError("invalid data, expected XIntOrString value to be either a string or integer")


def _text(raw: Any) -> Any:
    if isinstance(raw, str):
        return str(raw)
    raise _got("string", raw)


def _number(raw: Any) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise _got("float", raw)


def _integer(raw: Any) -> int:
    if type(raw) is int:
        return raw
    raise _got("int", raw)


def _boolean(raw: Any) -> bool:
    if type(raw) is bool:
        return raw
    raise _got("bool", raw)


def _object(node: RuleNode) -> Convert:
    maker: Callable[[dict[str, Any], RuleNode], Any] = ObjectValue
    if not node.fields and node.additional is not None:
        maker = TypedMap

    def convert(raw: Any) -> Any:
        if isinstance(raw, dict):
            return maker(raw, node)
        raise CelError("invalid data, expected a map for the provided schema with type=object")

    return convert


def _array(node: RuleNode) -> Convert:
    maker = {"map": MapList, "set": SetList}.get(node.list_type, TypedList)

    def convert(raw: Any) -> Any:
        if not isinstance(raw, list):
            raise CelError("invalid data, expected an array for the provided schema with type=array")
        if node.items is None:
            raise CelError("invalid array type, expected Items with a non-empty Schema")
        return maker(raw, node)

    return convert


def _duration(raw: Any) -> Duration:
    text = _text(raw)
    nanos = read_duration(text)
    if nanos is None:
        nanos = read_long_duration(text)
    if nanos is None:
        raise CelError(f"Invalid duration {text}: time: invalid duration {quote_text(text)}")
    return Duration(nanos)


def _date(raw: Any) -> Timestamp:
    text = _text(raw)
    found = any_timestamp(f"{text}T00:00:00Z") if FORMATS["date"](text) else None
    if found is None:
        fault = f'parsing time {quote_text(text)} as "2006-01-02": cannot parse {quote_text(text)} as "2006"'
        raise CelError(f"Invalid date formatted string {text}: {fault}")
    return found


def _date_time(raw: Any) -> Timestamp:
    text = _text(raw)
    if not text:
        return Timestamp(0)
    found = any_timestamp(text) if FORMATS["datetime"](text) else None
    if found is None:
        raise CelError(f"Invalid date-time formatted string {text}: cannot parse it as a time")
    return found


def _bytes(raw: Any) -> bytes:
    """In the alphabet of URLs, though the format's check takes the standard one (strfmt.Base64)."""
    text = _text(raw)
    standard = text.translate(_FROM_URL)
    fault = base64_fault(standard)
    if fault is not None:
        raise CelError(f"Invalid byte formatted string {text}: {fault}")
    return b64decode(standard)


_TEXTS: Final[dict[str, Convert]] = {
    "duration": _duration,
    "date": _date,
    "date-time": _date_time,
    "byte": _bytes,
}


class UnknownValue(Opaque):
    """A value that is preserved without a type: it can be compared, and nothing else."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def same(self, other: Any) -> bool:
        return _deeply_equal(self.raw, other.raw if isinstance(other, UnknownValue) else native(other))


def _deeply_equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _deeply_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_deeply_equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


class ObjectValue(DocumentMap):
    """An object with fields. A field that is null is none."""

    __slots__ = ("node",)

    def __init__(self, raw: dict[str, Any], node: RuleNode) -> None:
        self.raw = raw
        self.node = node

    def __iter__(self) -> Iterator[Any]:
        return (escaped for escaped, name in self.node.names.items() if name in self.raw)

    def at_key(self, key: Any) -> Any:
        if type(key) is not str:
            raise no_such_overload()
        name = self.node.names.get(key) or unescaped_name(key)
        return self.field(name) if name in self.node.fields else MISSING

    def field(self, name: str) -> Any:
        raw = self.raw.get(name)
        return MISSING if raw is None else converter(self.node.fields[name])(raw)

    def same(self, other: Any) -> bool:
        if not isinstance(other, MapValue):
            raise no_such_overload()
        if len(self.raw) != len(other):
            return False
        for name, raw in self.raw.items():
            if name in self.node.fields:
                # As upstream, which looks names up as keys, with their escapes: `__dot__` finds none.
                ours, theirs = self.at_key(name), other.at_key(name)
                if (ours is MISSING) != (theirs is MISSING):
                    return False
                if ours is not MISSING and not equal(ours, theirs):
                    return False
            elif not isinstance(other, ObjectValue | TypedMap):
                raise no_such_overload()
            elif name in other.raw and not _deeply_equal(raw, other.raw[name]):
                return False
        return True


class TypedMap(DocumentMap):
    """An object of values of one type."""

    __slots__ = ("_convert",)

    def __init__(self, raw: dict[str, Any], node: RuleNode) -> None:
        assert node.additional is not None
        self.raw = raw
        self._convert = converter(node.additional)

    def at_key(self, key: Any) -> Any:
        if type(key) is not str:
            raise no_such_overload()
        return self._convert(self.raw[key]) if key in self.raw else MISSING

    def same(self, other: Any) -> bool:
        if not isinstance(other, MapValue):
            raise no_such_overload()
        return super().same(other)


class TypedList(ListValue):
    """``items`` are as the document has them, or values that an expression added."""

    __slots__ = ("_convert", "_items", "_node")

    def __init__(self, items: list[Any], node: RuleNode, convert: Convert | None = None) -> None:
        assert node.items is not None
        self._items = items
        self._node = node
        self._convert = convert or converter(node.items)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, self._items)

    def item(self, index: int) -> Any:
        return self._convert(self._items[index])

    def same(self, other: Any) -> bool:
        if not isinstance(other, tuple | ListValue):
            raise no_such_overload()
        return len(other) == len(self) and all(map(equal, self, other))

    def plus(self, other: Iterable[Any]) -> Any:
        return (*self, *other)

    def native(self) -> Any:
        return list(map(native, self)) if self._convert is _same else self._items


def _same(value: Any) -> Any:
    return value


class SetList(TypedList):
    """A list without order. ``+`` is the union, and a set again."""

    __slots__ = ()
    go_name = "*common.unstructuredSetList"

    def same(self, other: Any) -> bool:
        if not isinstance(other, tuple | ListValue):
            raise no_such_overload()
        return len(other) == len(self) and set(map(_member, self)) == set(map(_member, other))

    def plus(self, other: Iterable[Any]) -> Any:
        found = list(self)
        members = set(map(_member, found))
        for each in other:
            if (member := _member(each)) not in members:
                members.add(member)
                found.append(each)
        return SetList(found, self._node, _same)


def _member(value: Any) -> tuple[type, Any]:
    if isinstance(value, tuple | ListValue | MapValue):
        raise CelError("listSet operations are only supported on lists of scalar values")
    return type(value), value


class MapList(TypedList):
    """A list of objects that are told apart by keys; ``+`` merges."""

    __slots__ = ()
    go_name = "*common.unstructuredMapList"

    def same(self, other: Any) -> bool:
        if not isinstance(other, tuple | ListValue):
            raise no_such_overload()
        if len(other) != len(self):
            return False
        # Only a sum looks its keys up by their names as CEL has them, as upstream.
        key_of = self._named_key if self._convert is _same else self._key
        ours = {key_of(each): each for each in self}
        seen = set()
        for each in other:
            key = key_of(each)
            if key not in ours or not equal(ours[key], each):
                return False
            seen.add(key)
        return len(seen) == len(ours)

    def plus(self, other: Iterable[Any]) -> Any:
        found = list(self)
        places = {self._named_key(each): index for index, each in enumerate(found)}
        for each in other:
            index = places.get(self._named_key(each), len(found))
            found[index : index + 1] = [each]
        return MapList(found, self._node, _same)

    def _key(self, value: Any) -> Any:
        """The values of an item's keys, by the names that CEL has for the keys: nothing for `a-b`. What is no
        object of a document has no key."""
        raw = value.native() if isinstance(value, ObjectValue | TypedMap) else None
        return object() if raw is None else _comparable(map(raw.get, self._names()))

    def _named_key(self, value: Any) -> tuple[Any, ...]:
        names = self._names()
        if not isinstance(value, MapValue):
            return (None,) * len(names)
        found = map(value.at_key, names)
        return _comparable(None if each is MISSING else native(each) for each in found)

    def _names(self) -> tuple[str, ...]:
        return tuple(escaped_name(name) or name for name in self._node.list_keys)


def _comparable(keys: Iterable[Any]) -> tuple[Any, ...]:
    return tuple((type(each), id(each) if isinstance(each, dict | list) else each) for each in keys)

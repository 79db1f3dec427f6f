"""Go types as decoding sees them: what each takes of JSON, and what it says to the rest.

One walk finds unknown and duplicate fields, wrong types, and, where nothing is wrong with these, required
fields and enumerations of the published schema. The rules are those of encoding/json's decode.go with the
changes of sigs.k8s.io/json: null is taken everywhere, an unknown value is not looked into.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import field
from math import inf
from typing import Any, Final, Protocol

from specmux_converters.go.text import INT64_MAX, Number, number_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.decoding.decoding_state import Decoding, Mismatch
from specmux_tools.validation.decoding.json_reader import EscapedText, Repeats
from specmux_tools.validation.decoding.type_meta import kind_of
from specmux_tools.validation.field_errors import not_supported, required
from specmux_tools.validation.report import Check, Severity, Violation
from specmux_tools.validation.schema.scalars import base64_fault, quantity_fault, time_fault

ALIASES: Final = {
    "ObjectMeta.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "ObjectReference.uid": "types.UID",
    "BoundObjectReference.uid": "types.UID",
    "Preconditions.uid": "types.UID",
    "StatusDetails.uid": "types.UID",
    "UserInfo.uid": "string",
}
"""Fields whose Go type is a named string, which OpenAPI shows as "string". Those of every kind."""


def go_type(component: str) -> str:
    """``v1.PodSpec`` for ``io.k8s.api.core.v1.PodSpec``: the package's last element, and the type."""
    package, _, name = component.rpartition(".")
    return f"{package.rpartition('.')[2].replace('-', '_')}.{name}" if package else name


def short_name(component: str) -> str:
    """``PodSpec`` for ``io.k8s.api.core.v1.PodSpec``."""
    return component.rpartition(".")[2]


class Node(Protocol):
    """A type. ``go_type`` is its name in errors."""

    @property
    def go_type(self) -> str: ...

    def decode(self, value: Any, state: Decoding) -> None: ...


def _name_value(value: Any) -> str:
    """A value where a number is wanted."""
    kind = kind_of(value)
    return f"number {number_text(value)}" if kind == "number" else kind


@dataclass(frozen=True, slots=True)
class Anything:
    """Raw JSON (RawExtension, FieldsV1, JSON): neither read nor looked into."""

    go_type: str = "interface {}"

    def decode(self, value: Any, state: Decoding) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Interface:
    """``interface{}``: any JSON, in which equal keys count."""

    go_type: str = "interface {}"

    def decode(self, value: Any, state: Decoding) -> None:
        decode_untyped(value, state)


@dataclass(frozen=True, slots=True)
class Text:
    go_type: str = "string"
    choices: frozenset[str] = frozenset()
    """An empty text passes: Go leaves such fields out."""

    def decode(self, value: Any, state: Decoding) -> None:
        if isinstance(value, str):
            if self.choices and value and value not in self.choices and state.has_room(state.schema):
                _schema(state, not_supported(tuple(state.path), value, sorted(self.choices)))
        elif value is not None:
            state.note_mismatch(kind_of(value), self.go_type)


@dataclass(frozen=True, slots=True)
class Boolean:
    go_type: str = "bool"

    def decode(self, value: Any, state: Decoding) -> None:
        if value is not None and type(value) is not bool:
            state.note_mismatch(kind_of(value), self.go_type)


@dataclass(frozen=True, slots=True)
class Integer:
    go_type: str
    least: int
    most: int

    def decode(self, value: Any, state: Decoding) -> None:
        if value is None or (type(value) is int and self.least <= value <= self.most):
            return
        if type(value) is Number and value.text == "-0" and self.least < 0:
            return
        state.note_mismatch(_name_value(value), self.go_type)


@dataclass(frozen=True, slots=True)
class Float:
    go_type: str = "float64"

    def decode(self, value: Any, state: Decoding) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            state.note_mismatch(kind_of(value), self.go_type)
        elif value is not None and abs(value) == inf:
            state.note_mismatch(_name_value(value), self.go_type)


@dataclass(frozen=True, slots=True)
class Bytes:
    """[]byte: base64, or a list of numbers."""

    go_type: str = "[]uint8"

    def decode(self, value: Any, state: Decoding) -> None:
        if isinstance(value, str):
            fault = base64_fault(value)
            if fault is not None:
                state.note_mismatch(fault, "")
        elif type(value) is list:
            for index, item in enumerate(value):
                state.path.append(index)
                _BYTE.decode(item, state)
                state.path.pop()
        elif value is not None:
            state.note_mismatch(kind_of(value), self.go_type)


_BYTE: Final = Integer("uint8", 0, 255)


@dataclass(frozen=True, slots=True)
class Time:
    """metav1.Time or MicroTime, by the layout. They stop at once."""

    go_type: str
    layout: str

    def decode(self, value: Any, state: Decoding) -> None:
        if isinstance(value, str):
            fault = time_fault(value, self.layout)
            if fault is not None:
                state.stop(fault)
        elif value is not None:
            state.stop(kind_of(value), "string")


@dataclass(frozen=True, slots=True)
class Quantity:
    go_type: str = "resource.Quantity"

    def decode(self, value: Any, state: Decoding) -> None:
        if value is None:
            return
        fault = quantity_fault(_quantity_text(value))
        if fault is not None:
            state.stop(fault)


def _quantity_text(value: Any) -> str:
    match value:
        case EscapedText():
            return value.written
        case str():
            return value
    return number_text(value) if kind_of(value) == "number" else ""


@dataclass(frozen=True, slots=True)
class IntOrString:
    go_type: str = "intstr.IntOrString"

    def decode(self, value: Any, state: Decoding) -> None:
        if value is None or isinstance(value, str):
            return
        if type(value) is int and -(2**31) <= value < 2**31:
            return
        if type(value) is Number and value.text == "-0":
            return
        state.stop(_name_value(value), "int32")


@dataclass(frozen=True, slots=True)
class List:
    item: Node

    @property
    def go_type(self) -> str:
        return f"[]{self.item.go_type}"

    def decode(self, value: Any, state: Decoding) -> None:
        if type(value) is not list:
            if value is not None:
                state.note_mismatch(kind_of(value), self.go_type)
            return
        decode, path = self.item.decode, state.path
        for index, item in enumerate(value):
            path.append(index)
            decode(item, state)
            path.pop()


@dataclass(frozen=True, slots=True)
class Map:
    value: Node

    @property
    def go_type(self) -> str:
        if isinstance(self.value, Quantity):
            return "v1.ResourceList"
        return f"map[string]{self.value.go_type}"

    def decode(self, value: Any, state: Decoding) -> None:
        if not isinstance(value, dict):
            if value is not None:
                state.note_mismatch(kind_of(value), self.go_type)
            return
        decode, path = self.value.decode, state.path
        for key, item in value.items() if type(value) is not Repeats else _note_repeats(value, state):
            path.append(key)
            decode(item, state)
            path.pop()


@dataclass(slots=True, eq=False)
class Struct:
    """``fields`` are filled in after it was made: types refer to each other in circles."""

    go_type: str
    name: str
    fields: dict[str, Node] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    is_open: bool = False
    """Takes unknown fields."""

    def decode(self, value: Any, state: Decoding) -> None:
        if not isinstance(value, dict):
            if value is not None:
                state.note_mismatch(kind_of(value), self.go_type)
            return
        fields, path = self.fields, state.path
        for key, item in value.items() if type(value) is not Repeats else _note_repeats(value, state, fields):
            node = fields.get(key)
            if node is not None:
                path.append(key)
                node.decode(item, state)
                path.pop()
            elif not self.is_open:
                state.note_unknown(key)
        for name in self.required:
            if value.get(name) is None and state.has_room(state.schema):
                _schema(state, required((*state.path, name)))


def _note_repeats(
    value: Repeats, state: Decoding, known: Container[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """The pairs as they were written. A key of ``known`` ones that came before is noted."""
    seen: set[str] = set()
    for key, item in value.pairs:
        if key in seen and (known is None or key in known):
            state.note_duplicate(key)
        seen.add(key)
        yield key, item


INT32: Final = Integer("int32", -(2**31), 2**31 - 1)
INT64: Final = Integer("int64", -INT64_MAX - 1, INT64_MAX)


def below(node: Node | None, part: str | int) -> Node | None:
    """The type of a field, of an item or of a map's values."""
    match node:
        case Struct(fields=fields):
            return fields.get(str(part))
        case Map(value=inner) | List(item=inner):
            return inner
    return None


def context(root: Node, path: tuple[str | int, ...]) -> tuple[str, str]:
    """The innermost struct above ``path`` and the fields on the way there, as decode.go's errorContext has
    them: without indices and keys of maps."""
    struct, fields = "", []
    node: Node | None = root
    for part in path:
        if isinstance(node, Struct):
            struct = node.name
            fields.append(str(part))
        node = below(node, part)
    return struct, ".".join(fields)


def mismatch_text(root: Node, mismatch: Mismatch) -> str:
    """UnmarshalTypeError.Error, or the text of what is none."""
    if not mismatch.go_type:
        return mismatch.value
    struct, fields = context(root, mismatch.path)
    place = f"Go struct field {struct}.{fields}" if struct or fields else "Go value"
    return f"json: cannot unmarshal {mismatch.value} into {place} of type {mismatch.go_type}"


def _schema(state: Decoding, message: str) -> None:
    state.schema.append(Violation(Severity.ERROR, Check.SCHEMA, tuple(state.path), message))


def known_fields(value: Any, node: Node) -> Any:
    """Reduce a decoded value to the fields of its Go type. Nulls are dropped like unset fields."""
    match node:
        case Struct() if isinstance(value, dict):
            fields = node.fields
            return {
                key: known_fields(item, fields[key]) if key in fields else item
                for key, item in value.items()
                if item is not None and (key in fields or node.is_open)
            }
        case Map() if isinstance(value, dict):
            return {key: known_fields(item, node.value) for key, item in value.items()}
        case List() if isinstance(value, list):
            return [known_fields(item, node.item) for item in value]
    return value


def decode_untyped(value: Any, state: Decoding) -> None:
    """Into ``interface{}``; an infinite number is recorded as a mismatch."""
    match value:
        case dict():
            for key, item in value.items() if type(value) is not Repeats else _note_repeats(value, state):
                _decode_inside(key, item, state)
        case list():
            for index, item in enumerate(value):
                _decode_inside(index, item, state)
        case Number() if abs(value) == inf:
            state.note_mismatch(f"number {value.text}", "float64")


def _decode_inside(part: str | int, item: Any, state: Decoding) -> None:
    if isinstance(item, dict | list | Number):
        state.path.append(part)
        decode_untyped(item, state)
        state.path.pop()

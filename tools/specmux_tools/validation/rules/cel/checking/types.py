"""Types of CEL, as the checker and messages know them (cel-go, common/types/types.go)."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass

DYN_KIND, ERROR_KIND, PARAM_KIND = "dyn", "error", "param"
LIST_KIND, MAP_KIND, TYPE_KIND = "list", "map", "type"
STRUCT_KIND, OPAQUE_KIND, NULL_KIND = "struct", "opaque", "null"


@dataclass(frozen=True, slots=True)
class CelType:
    kind: str
    name: str
    """The name that ``type()`` gives."""
    params: tuple[CelType, ...] = ()
    shown: str = field(default="", compare=False)
    """The name in messages, where it is another."""
    is_nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if not self.params:
            return self.shown or self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def is_dyn(self) -> bool:
        return self.kind == DYN_KIND

    @property
    def is_dyn_or_error(self) -> bool:
        return self.kind in (DYN_KIND, ERROR_KIND)

    @property
    def is_optional(self) -> bool:
        return self.kind == OPAQUE_KIND and self.name == "optional_type"


DYN: Final = CelType(DYN_KIND, "dyn")
ANY: Final = CelType(DYN_KIND, "google.protobuf.Any", shown="any")
EMPTY: Final = CelType(STRUCT_KIND, "google.protobuf.Empty")
ERROR: Final = CelType(ERROR_KIND, "error", shown="!error!")
NULL: Final = CelType(NULL_KIND, "null_type", shown="null")
BOOL: Final = CelType("bool", "bool")
INT: Final = CelType("int", "int")
UINT: Final = CelType("uint", "uint")
DOUBLE: Final = CelType("double", "double")
STRING: Final = CelType("string", "string")
BYTES: Final = CelType("bytes", "bytes")
DURATION: Final = CelType("duration", "google.protobuf.Duration", shown="duration")
TIMESTAMP: Final = CelType("timestamp", "google.protobuf.Timestamp", shown="timestamp")
TYPE: Final = CelType(TYPE_KIND, "type")

SCALAR_KINDS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def list_of(item: CelType) -> CelType:
    return CelType(LIST_KIND, "list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(MAP_KIND, "map", (key, value))


def optional_of(inner: CelType) -> CelType:
    return CelType(OPAQUE_KIND, "optional_type", (inner,))


def type_of(inner: CelType) -> CelType:
    return CelType(TYPE_KIND, "type", (inner,))


def param(name: str) -> CelType:
    return CelType(PARAM_KIND, name)


def wrapper_of(inner: CelType) -> CelType:
    return CelType(inner.kind, inner.name, shown=f"wrapper({inner})", is_nullable=True)


def struct(name: str) -> CelType:
    return CelType(STRUCT_KIND, name)


def opaque(name: str) -> CelType:
    return CelType(OPAQUE_KIND, name)


def unwrapped(of: CelType) -> tuple[CelType, bool]:
    """Without its optional, and whether it was one."""
    return (of.params[0], True) if of.is_optional else (of, False)


def signature(arguments: list[CelType] | tuple[CelType, ...], *, is_member: bool) -> str:
    """The signature of a call in messages."""
    if is_member:
        return f"{arguments[0]}.({', '.join(map(str, arguments[1:]))})"
    return f"({', '.join(map(str, arguments))})"

"""Types of CEL as the checker and messages know them, which of them fit where another is wanted, and what
that says of type parameters (cel-go, common/types/types.go, checker/types.go)."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass

DYN_KIND, ERROR_KIND, PARAM_KIND = "dyn", "error", "param"
LIST_KIND, MAP_KIND, TYPE_KIND = "list", "map", "type"
STRUCT_KIND, OPAQUE_KIND, NULL_KIND = "struct", "opaque", "null"
_NULLABLE = frozenset((OPAQUE_KIND, STRUCT_KIND, "duration", "timestamp"))
_COMPOSED = frozenset((OPAQUE_KIND, LIST_KIND, MAP_KIND))


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


def unwrap_optional(of: CelType) -> tuple[CelType, bool]:
    """Without its optional, and whether it was one."""
    return (of.params[0], True) if of.is_optional else (of, False)


def signature(arguments: list[CelType] | tuple[CelType, ...], *, is_member: bool) -> str:
    """The signature of a call in messages."""
    if is_member:
        return f"{arguments[0]}.({', '.join(map(str, arguments[1:]))})"
    return f"({', '.join(map(str, arguments))})"


class Bindings:
    """Types of type parameters. A failed attempt leaves none."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._trail: list[tuple[str, CelType | None]] = []
        self._count = 0

    def fresh(self) -> CelType:
        self._count += 1
        return CelType(PARAM_KIND, f"_var{self._count - 1}")

    def rename(self, of: CelType, names: dict[str, CelType]) -> CelType:
        """With its own parameters for those of a declaration."""
        if of.kind == PARAM_KIND:
            return names.get(of.name, of)
        if not of.params:
            return of
        return CelType(of.kind, of.name, tuple(self.rename(each, names) for each in of.params), of.shown)

    def fits(self, given: CelType, wanted: CelType) -> bool:
        return self.all_fit((given,), (wanted,))

    def all_fit(self, given: tuple[CelType, ...], wanted: tuple[CelType, ...]) -> bool:
        mark = len(self._trail)
        if self._each_fits(given, wanted):
            return True
        while len(self._trail) > mark:
            name, before = self._trail.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def resolve(self, of: CelType, *, is_final: bool = False) -> CelType:
        """With what is known of its parameters; finally dyn for those of which nothing is."""
        while of.kind == PARAM_KIND:
            found = self._bound.get(of.name)
            if found is None:
                return DYN if is_final else of
            of = found
        if not of.params:
            return of
        params = tuple(self.resolve(each, is_final=is_final) for each in of.params)
        return of if params == of.params else CelType(of.kind, of.name, params, of.shown)

    def _each_fits(self, given: tuple[CelType, ...], wanted: tuple[CelType, ...]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, given: CelType, wanted: CelType) -> bool:
        if wanted.kind == PARAM_KIND:
            is_valid, is_bound = self._binds(given, wanted)
            if is_valid or is_bound:
                return is_valid
        if given.kind == PARAM_KIND:
            return self._binds(wanted, given)[0]
        if given.is_dyn_or_error or wanted.is_dyn_or_error:
            return True
        if given.kind == NULL_KIND or wanted.kind == NULL_KIND:
            other = wanted if given.kind == NULL_KIND else given
            return other.is_nullable or other.kind in _NULLABLE or other.kind == NULL_KIND
        if given.kind == TYPE_KIND:
            return wanted.kind == TYPE_KIND
        if given.kind in _COMPOSED:
            same = given.kind == wanted.kind and given.name == wanted.name
            return same and self._each_fits(given.params, wanted.params)
        return given == wanted

    def _binds(self, given: CelType, parameter: CelType) -> tuple[bool, bool]:
        """Whether the parameter can be that, and whether it was bound before."""
        if given == parameter:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is not None:
            if given == bound:
                return True, True
            if not self._fits(given, bound):
                return False, True
            general = most_general(given, bound)
            if not self._occurs(parameter, general):
                self._bind(parameter, general)
            return True, True
        if self._occurs(parameter, given):
            return False, False
        self._bind(parameter, given)
        return True, False

    def _bind(self, parameter: CelType, to: CelType) -> None:
        self._trail.append((parameter.name, self._bound.get(parameter.name)))
        self._bound[parameter.name] = to

    def _occurs(self, parameter: CelType, within: CelType) -> bool:
        if within == parameter:
            return True
        if within.kind == PARAM_KIND:
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(parameter, bound)
        return any(self._occurs(parameter, each) for each in within.params)


def most_general(first: CelType, second: CelType) -> CelType:
    return first if _is_general(first, second) else second


def _is_general(first: CelType, second: CelType) -> bool:
    if first.is_dyn or first.kind == PARAM_KIND:
        return True
    if second.is_dyn or second.kind == PARAM_KIND or first.kind != second.kind:
        return False
    if first.kind == TYPE_KIND:
        return True
    if first.kind in _COMPOSED:
        same = first.name == second.name and len(first.params) == len(second.params)
        return same and all(map(_is_general, first.params, second.params))
    return first == second

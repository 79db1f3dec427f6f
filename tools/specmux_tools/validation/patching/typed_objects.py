"""Checks that an object conforms to its type in server-side apply (structured-merge-diff,
typed/validate.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.go.printed_values import plain, with_types
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.patching.apply_types import (
    ASSOCIATIVE,
    ApplyTypes,
    Atom,
    NoElement,
    deduced,
    fields_of,
)
from specmux_tools.validation.report import Path

_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


@dataclass(frozen=True, slots=True)
class TypeFault:
    """``place``: the path in structured-merge-diff's form: ``.spec.ports[port=80]``."""

    place: str
    text: str
    path: Path = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text

    def below(self, place: str, part: str | int) -> TypeFault:
        return TypeFault(place + self.place, self.text, (part, *self.path))


def faults_text(faults: list[TypeFault]) -> str:
    """All faults combined into one error text."""
    if len(faults) == 1:
        return str(faults[0])
    return "\n".join(["errors:", *(f"  {each}" for each in faults)])


def type_faults(
    types: ApplyTypes, component: str, value: Any, *, allows_duplicates: bool = False
) -> list[TypeFault]:
    """``allows_duplicates``: accept equal items in lists, for a stored object."""
    return _Walk(types, allows_duplicates).faults({"namedType": component}, value)


class _Walk:
    def __init__(self, types: ApplyTypes, allows_duplicates: bool) -> None:
        self._types = types
        self._allows_duplicates = allows_duplicates

    def faults(self, reference: Atom, value: Any) -> list[TypeFault]:
        atom = self._types.resolve(reference)
        if atom is None:
            name = reference.get("namedType", "inlined type")
            return [TypeFault("", f"schema error: no type found matching: {name}")]
        atom = deduced(atom, value)
        if "map" in atom:
            return self._map(atom["map"], value)
        if "scalar" in atom:
            return _scalar(atom["scalar"], value)
        if "list" in atom:
            return self._list(atom["list"], value)
        name = f"named type: {reference['namedType']}" if "namedType" in reference else "inlined"
        return [TypeFault("", f"schema error: invalid atom: {name}")]

    def _map(self, map_type: Mapping[str, Any], value: Any) -> list[TypeFault]:
        if value is None:
            return []
        if not isinstance(value, dict):
            return [TypeFault("", f"expected map, got &{{{plain(value, keeps_integers=True)}}}")]
        fields = {each["name"]: each["type"] for each in fields_of(map_type)}
        others = map_type.get("elementType")
        found: list[TypeFault] = []
        for key, item in value.items():
            reference = fields.get(key, others)
            if reference is None:
                # Go does not continue in this map.
                return [*found, TypeFault(f".{key}", "field not declared in schema", (key,))]
            found += (each.below(f".{key}", key) for each in self.faults(reference, item))
        return found

    def _list(self, list_type: Mapping[str, Any], value: Any) -> list[TypeFault]:
        if value is None:
            return []
        if not isinstance(value, list):
            return [TypeFault("", f"expected list, got &{{{plain(value, keeps_integers=True)}}}")]
        is_associative = list_type.get("elementRelationship") == ASSOCIATIVE
        seen = set()
        found: list[TypeFault] = []
        for index, item in enumerate(value):
            place = f"[{index}]"
            if is_associative:
                try:
                    element = self._types.element(list_type, item)
                except NoElement as error:
                    return [*found, TypeFault("", f"element {index}: {error}", (index,))]
                if element.identity in seen and not self._allows_duplicates:
                    found.append(TypeFault("", f"duplicate entries for key {element.text}", (index,)))
                seen.add(element.identity)
                place = element.text
            found += (each.below(place, index) for each in self.faults(list_type["elementType"], item))
        return found


def _scalar(kind: str, value: Any) -> list[TypeFault]:
    if value is None:
        return []
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "numeric" if not is_number:
            text = f"expected numeric (int or float), got {_go_type(value)}"
        case "string" if not isinstance(value, str):
            text = (
                "expected string, got &value.valueUnstructured{Value:"
                f"{with_types(value, keeps_integers=True)}}}"
            )
        case "boolean" if not isinstance(value, bool):
            text = f"expected boolean, got &{{{plain(value, keeps_integers=True)}}}"
        case "untyped" if isinstance(value, dict | list):
            text = f"expected any scalar, got &{{{plain(value, keeps_integers=True)}}}"
        case _:
            return []
    return [TypeFault("", text)]


def _go_type(value: Any) -> str:
    return next(name for kind, name in _GO_TYPES.items() if type(value) is kind or isinstance(value, kind))

"""Server-side apply (sigs.k8s.io/structured-merge-diff): types of a document (schema, typed/helpers.go),
whether an object conforms to its type (typed/validate.go), and the merge into the stored object
(typed/merge.go).

The applied value wins, associative lists are merged by key. Nothing is removed: that needs the ownership in
managedFields, which is not evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.document import Document
from specmux_converters.go.text import format_typed, format_value, general_text, quote_text
from specmux_converters.json_values import array, mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.merge_types import to_merge_schema
from specmux_tools.validation.decoding.type_meta import go_type_of
from specmux_tools.validation.report import Path

Atom: TypeAlias = Mapping[str, Any]
"""``scalar``, ``list`` and ``map``: the possible forms of a value."""
ASSOCIATIVE: Final = "associative"
ATOMIC: Final = "atomic"
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class PathElement:
    """Identity of an item in its container. Equal elements denote the same item."""

    text: str
    identity: Any


class NoElement(Exception):
    """An item of an associative list has no identity; the text is structured-merge-diff's."""


class ApplyTypes:
    """The types of one document. Raises InvalidSchemas, as the conversion does."""

    def __init__(self, document: Document, *, preserve_unknown_fields: bool = False) -> None:
        made = to_merge_schema(document, preserve_unknown_fields=preserve_unknown_fields)
        self._types: dict[str, Atom] = {each["name"]: each for each in made["types"]}

    def resolve(self, reference: Atom) -> Atom | None:
        """The atom of a type reference; None for an unknown type."""
        name = reference.get("namedType")
        if name is None:
            return reference
        atom = self._types.get(name)
        relationship = reference.get("elementRelationship")
        if atom is None or relationship is None:
            return atom
        for part in ("map", "list"):
            if part in atom:
                return {**atom, part: {**atom[part], "elementRelationship": relationship}}
        return None

    def element(self, list_type: Mapping[str, Any], item: Any) -> PathElement:
        """The identity of an item of an associative list. Raises NoElement."""
        keys = list_type.get("keys")
        return self._key(list_type, keys, item) if keys else _of_set(item)

    def _key(self, list_type: Mapping[str, Any], keys: list[str], item: Any) -> PathElement:
        if item is None:
            raise NoElement("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise NoElement("associative list with keys may not have non-map elements")
        found = []
        for key in keys:
            value = item[key] if key in item else self._default(list_type, key)
            if key in item or value is not None:
                found.append((key, value))
        if not found:
            listed = " ".join(map(quote_text, keys))
            raise NoElement(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        found.sort(key=lambda pair: pair[0])
        text = ",".join(f"{key}={value_text(value)}" for key, value in found)
        return PathElement(f"[{text}]", tuple((key, _identity(value)) for key, value in found))

    def _default(self, list_type: Mapping[str, Any], key: str) -> Any:
        fault = f"couldn't find default value for {key}: "
        atom = self.resolve(list_type.get("elementType", {}))
        if atom is None:
            raise NoElement(f"{fault}invalid elementType for list")
        if "map" not in atom:
            raise NoElement(f"{fault}associative list may not have non-map types")
        return next((each.get("default") for each in fields_of(atom["map"]) if each["name"] == key), None)


def fields_of(map_type: Mapping[str, Any]) -> list[dict[str, Any]]:
    return array(map_type.get("fields"))


def deduce_atom(atom: Atom, value: Any) -> Atom:
    """The atom restricted to the value's form; the whole atom if none matches."""
    part = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
    return {part: atom[part]} if value is not None and part in atom else atom


def value_text(value: Any) -> str:
    """value.ToString of structured-merge-diff."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return general_text(value)
        case str():
            return quote_text(value)
        case list():
            return "[" + ",".join(map(value_text, value)) + "]"
        case dict():
            return "".join(f"{key}={value_text(item)}" for key, item in value.items())
        case _:
            return str(value)


def _of_set(item: Any) -> PathElement:
    match item:
        case dict():
            raise NoElement("associative list without keys has an element that's a map type")
        case list():
            raise NoElement("not supported: associative list with lists as elements")
        case None:
            raise NoElement("associative list without keys has an element that's an explicit null")
        case _:
            return PathElement(f"[={value_text(item)}]", _identity(item))


def _identity(value: Any) -> Any:
    """Numbers compare by value and differ from booleans."""
    if isinstance(value, dict | list):
        return value_text(value)
    return (isinstance(value, bool), value)


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
        atom = deduce_atom(atom, value)
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
            return [TypeFault("", f"expected map, got &{{{format_value(value, keeps_integers=True)}}}")]
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
            return [TypeFault("", f"expected list, got &{{{format_value(value, keeps_integers=True)}}}")]
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
            text = f"expected numeric (int or float), got {go_type_of(value)}"
        case "string" if not isinstance(value, str):
            text = (
                "expected string, got &value.valueUnstructured{Value:"
                f"{format_typed(value, keeps_integers=True)}}}"
            )
        case "boolean" if not isinstance(value, bool):
            text = f"expected boolean, got &{{{format_value(value, keeps_integers=True)}}}"
        case "untyped" if isinstance(value, dict | list):
            text = f"expected any scalar, got &{{{format_value(value, keeps_integers=True)}}}"
        case _:
            return []
    return [TypeFault("", text)]


def merge_applied(types: ApplyTypes, component: str, stored: Any, applied: Any) -> Any:
    """Both must have the type; lists of the stored object may contain equal items."""
    found = _Merge(types).value({"namedType": component}, stored, applied)
    return {} if found is _ABSENT else found


class _Merge:
    def __init__(self, types: ApplyTypes) -> None:
        self._types = types

    def value(self, reference: Atom, stored: Any, applied: Any) -> Any:
        atom = self._types.resolve(reference) or {}
        shape = deduce_atom(atom, stored if applied is _ABSENT else applied)
        if "map" in shape:
            return self._map(shape["map"], stored, applied)
        if "list" in shape and "scalar" not in shape:
            return self._list(shape["list"], stored, applied)
        return _winner(stored, applied)

    def _map(self, map_type: Mapping[str, Any], stored: Any, applied: Any) -> Any:
        ours, theirs = (mapping(each) for each in (stored, applied))
        if map_type.get("elementRelationship") == ATOMIC or not (ours or theirs):
            return _winner(stored, applied)
        fields = {each["name"]: each["type"] for each in fields_of(map_type)}
        others = map_type.get("elementType", {})
        made = {}
        for key in dict.fromkeys((*ours, *theirs)):
            value = self.value(fields.get(key, others), ours.get(key, _ABSENT), theirs.get(key, _ABSENT))
            if value is not _ABSENT:
                made[key] = value
        return made or _ABSENT

    def _list(self, list_type: Mapping[str, Any], stored: Any, applied: Any) -> Any:
        ours, theirs = (array(each) for each in (stored, applied))
        if list_type.get("elementRelationship") == ATOMIC or not (ours or theirs):
            return _winner(stored, applied)
        return self._items(list_type, ours, theirs) or _ABSENT

    def _items(self, list_type: Mapping[str, Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
        """Items in stored order if none moves, otherwise in applied order."""
        left, right = ([self._types.element(list_type, item) for item in items] for items in (ours, theirs))
        stored = _index(left, ours)
        applied = _index(right, theirs)
        shared = [each.identity for each in right if each.identity in stored]
        reference = list_type["elementType"]
        made: list[Any] = []

        def add(old: Any, new: Any) -> None:
            value = self.value(reference, old, new)
            if value is not _ABSENT:
                made.append(value)

        done: set[Any] = set()
        at = other = turn = 0
        while at < len(left) or other < len(right):
            expected = shared[turn] if turn < len(shared) else None
            if at < len(left) and other < len(right):
                identity = left[at].identity
                if identity == right[other].identity:
                    done.add(identity)
                    add(stored[identity], applied[identity])
                    at, other, turn = at + 1, other + 1, turn + 1
                    continue
                if identity in applied and expected is not None and expected != identity:
                    at += 1
                    continue
            if at < len(left):
                identity = left[at].identity
                if identity not in applied:
                    add(ours[at], _ABSENT)
                    at += 1
                    continue
                at += identity in done
            if other < len(right):
                identity = right[other].identity
                done.add(identity)
                add(stored.get(identity, _ABSENT), applied[identity])
                other += 1
                turn += expected is not None and expected == identity
        return made


def _index(elements: list[PathElement], items: list[Any]) -> dict[Any, Any]:
    """Items by identity; those that occur twice are left out."""
    found: dict[Any, Any] = {}
    for element, item in zip(elements, items, strict=True):
        found[element.identity] = None if element.identity in found else item
    return found


def _winner(stored: Any, applied: Any) -> Any:
    return stored if applied is _ABSENT else applied

"""Types for server-side apply, from the document of the kind (sigs.k8s.io/structured-merge-diff, schema and
typed/helpers.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.document import Document
from specmux_converters.go.text import general_text, quote_text
from specmux_converters.json_values import array
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.merge_types import to_merge_schema

Atom: TypeAlias = Mapping[str, Any]
"""``scalar``, ``list`` and ``map``: the possible forms of a value."""
ASSOCIATIVE: Final = "associative"
ATOMIC: Final = "atomic"


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


def deduced(atom: Atom, value: Any) -> Atom:
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

"""Convert the schemas of an OpenAPI v3 document to types of structured-merge-diff.

A type is a named *atom*: how it is treated as a scalar, a list and a map. References become names and are
never followed, so cycles and dangling references are harmless. The rules are those of kube-openapi,
pkg/schemaconv (``ToSchemaFromOpenAPI``); types and fields are sorted, where Go's order is that of its maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from specmux_converters.document import Document
from specmux_converters.errors import InvalidDocument, InvalidSchemas, LimitExceeded
from specmux_converters.go.text import format_typed, format_value
from specmux_converters.losses import pointer_to
from specmux_converters.releases import NULLABLE, minor_release

# An extension with a value of null is present, with an unknown value. Source: kube-openapi,
# pkg/schemaconv/openapi.go, getMapElementRelationship and getListElementRelationship.

Report: TypeAlias = Callable[[str], None]

ATOMIC: Final = "atomic"
ASSOCIATIVE: Final = "associative"
SEPARABLE: Final = "separable"


class ListRelationship(NamedTuple):
    elements: str
    keys: tuple[str, ...] = ()
    """The fields that identify elements; empty if elements are identified by value."""


def map_relationship(schema: Mapping[str, Any], report: Report) -> str | None:
    """None if the schema does not specify it."""
    if "x-kubernetes-map-type" not in schema:
        return None
    match schema["x-kubernetes-map-type"]:
        case "atomic":
            return ATOMIC
        case "granular":
            return SEPARABLE
        case other:
            report(f"unknown map type {format_value(other)}")
            return None


def list_relationship(schema: Mapping[str, Any], report: Report) -> ListRelationship:
    """``x-kubernetes-list-type``, or ``x-kubernetes-patch-strategy`` only if that is absent."""
    if "x-kubernetes-list-type" not in schema:
        return _by_patch_strategy(schema, report)
    match schema["x-kubernetes-list-type"]:
        case "atomic":
            pass
        case "set":
            return ListRelationship(ASSOCIATIVE)
        case "map":
            return ListRelationship(ASSOCIATIVE, _map_keys(schema, report))
        case other:
            report(f"unknown list type {format_value(other)}")
    return ListRelationship(ATOMIC)


def _map_keys(schema: Mapping[str, Any], report: Report) -> tuple[str, ...]:
    if "x-kubernetes-list-map-keys" not in schema:
        report("missing map keys")
        return ()
    keys = schema["x-kubernetes-list-map-keys"]
    if not isinstance(keys, list):
        report(f"uninterpreted map keys: {format_typed(keys)}")
        return ()
    return tuple(key for key in keys if isinstance(key, str))


def _by_patch_strategy(schema: Mapping[str, Any], report: Report) -> ListRelationship:
    if "x-kubernetes-patch-strategy" not in schema:
        return ListRelationship(ATOMIC)
    match schema["x-kubernetes-patch-strategy"]:
        case "merge" | "merge,retainKeys":
            return ListRelationship(ASSOCIATIVE, _merge_key(schema, report))
        case "retainKeys":
            pass
        case other:
            report(f"unknown patch strategy {format_value(other)}")
    return ListRelationship(ATOMIC)


def _merge_key(schema: Mapping[str, Any], report: Report) -> tuple[str, ...]:
    if "x-kubernetes-patch-merge-key" not in schema:
        return ()
    key = schema["x-kubernetes-patch-merge-key"]
    if isinstance(key, str):
        return (key,)
    report(f"uninterpreted merge key: {format_typed(key)}")
    return ()


ATOMIC_TYPE: Final = "__untyped_atomic_"
DEDUCED_TYPE: Final = "__untyped_deduced_"

_ATOMIC_LIST: Final = {"elementType": {"namedType": ATOMIC_TYPE}, "elementRelationship": "atomic"}
_ANYTHING: Final[Document] = {"scalar": "untyped", "list": _ATOMIC_LIST, "map": _ATOMIC_LIST}
_DEDUCED: Final[Document] = {
    "scalar": "untyped",
    "list": _ATOMIC_LIST,
    "map": {"elementType": {"namedType": DEDUCED_TYPE}, "elementRelationship": "separable"},
}
_FIXED: Final[Mapping[str, Document]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"scalar": "untyped"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _ANYTHING,
}
"""Components whose schema does not determine their type (kubernetes/kube-openapi#364)."""

_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_STRING_FORMATS: Final = (None, "", "byte")


def to_merge_schema(
    document: Document, *, preserve_unknown_fields: bool = False, release: str | None = None
) -> Document:
    """``{"types": [...]}`` of the document's ``components.schemas``, by the rules of the release ("1.36"), by
    default the newest.

    Raises InvalidSchemas with every error of Go's conversion, InvalidDocument for a value of the wrong JSON
    type, LimitExceeded for schemas nested too deeply, UnknownRelease.
    """
    components = _get_typed(document, "components", dict, "")
    schemas = _get_typed(components or {}, "schemas", dict, "/components") or {}
    errors: list[str] = []
    tells_null = NULLABLE.is_in(minor_release(release))
    types = [(ATOMIC_TYPE, _ANYTHING), (DEDUCED_TYPE, _DEDUCED)]
    for name, schema in schemas.items():
        pointer = f"/components/schemas{pointer_to(name)}"
        if not isinstance(schema, dict):
            raise InvalidDocument("a schema must be an object", pointer=pointer)
        if _get_typed(schema, "$ref", str, pointer):
            continue
        try:
            place = _Place(name, pointer, preserve_unknown_fields, tells_null, errors)
            atom = _FIXED.get(name) or place.atom(schema)
        except RecursionError:
            raise LimitExceeded("nested too deeply", pointer=pointer) from None
        types.append((name, atom))
    if errors:
        raise InvalidSchemas(errors)
    types.sort(key=itemgetter(0))
    return {"types": [{"name": name, **atom} for name, atom in types]}


class _Place:
    """A component, or a schema inlined below it, which inherits what it preserves."""

    __slots__ = ("errors", "pointer", "preserves", "tells_null", "where")

    def __init__(
        self, where: str, pointer: str, preserves: bool, tells_null: bool, errors: list[str]
    ) -> None:
        self.where = where
        self.pointer = pointer
        self.preserves = preserves
        self.tells_null = tells_null
        self.errors = errors

    def report(self, text: str) -> None:
        self.errors.append(f"{self.where}: {text}")

    def atom(self, schema: Document) -> Document:
        if schema.get("x-kubernetes-preserve-unknown-fields") is True:
            self.preserves = True
        match self._type(schema):
            case "":
                return {"scalar": "untyped", "list": self._list(schema), "map": self._map(schema)}
            case "object":
                return {"map": self._map(schema)}
            case "array":
                return {"list": self._list(schema)}
            case "string":
                is_string = _get_typed(schema, "format", str, self.pointer) in _STRING_FORMATS
                return {"scalar": "string" if is_string else "untyped"}
            case other:
                if other not in _SCALARS:
                    self.report(f"unrecognized type: '{other}'")
                return {"scalar": _SCALARS.get(other, "untyped")}

    def _type(self, schema: Document) -> str:
        """The first one, if there is a list of types."""
        match schema.get("type"):
            case None | []:
                return ""
            case str(name) | [str(name), *_]:
                return name
            case _:
                raise InvalidDocument("not a type", pointer=f"{self.pointer}/type")

    def _reference(self, schema: object, *steps: str) -> Document:
        """The type of a property, an element or a value."""
        if not isinstance(schema, dict):
            raise InvalidDocument("a schema must be an object", pointer=self.pointer + pointer_to(*steps))
        name = _referred_name(schema)
        pointer = self.pointer + pointer_to(*steps)
        is_nullable = True if _get_typed(schema, "nullable", bool, pointer) and self.tells_null else None
        if name:
            relationship = map_relationship(schema, self.report)
            told = {"namedType": name, "elementRelationship": relationship, "nullable": is_nullable}
            return _drop_absent(told)
        place = _Place(f"inlined in {self.where}", pointer, self.preserves, self.tells_null, self.errors)
        return _drop_absent({**place.atom(schema), "nullable": is_nullable})

    def _list(self, schema: Document) -> Document:
        relationship = list_relationship(schema, self.report)
        items = schema.get("items")
        if items is None:
            if self._type(schema) == "array":
                self.report("`items` must be specified on arrays")
            element: Document = {"namedType": ATOMIC_TYPE}
        else:
            element = self._reference(items, "items")
        keys = list(relationship.keys)
        return _drop_absent(
            {"elementType": element, "elementRelationship": relationship.elements, "keys": keys or None}
        )

    def _map(self, schema: Document) -> Document:
        properties: Document = _get_typed(schema, "properties", dict, self.pointer) or {}
        fields = [self._field(name, properties[name]) for name in sorted(properties)]
        element = self._element(schema, has_fields=bool(fields))
        relationship = map_relationship(schema, self.report)
        return _drop_absent(
            {"fields": fields or None, "elementType": element, "elementRelationship": relationship}
        )

    def _field(self, name: str, schema: Any) -> Document:
        reference = self._reference(schema, "properties", name)
        return _drop_absent({"name": name, "type": reference, "default": schema.get("default")})

    def _element(self, schema: Document, *, has_fields: bool) -> Document | None:
        """The type of values under keys that are not fields."""
        match schema.get("additionalProperties"):
            case None:
                return {"namedType": DEDUCED_TYPE} if self.preserves or not has_fields else None
            case bool(allowed):
                return {"namedType": DEDUCED_TYPE} if allowed else None
            case values:
                return self._reference(values, "additionalProperties")


def _referred_name(schema: Document) -> str:
    """The text after the last slash of ``$ref``, or of a single ``$ref`` in ``allOf``; "" otherwise."""
    match schema:
        case {"$ref": str(reference)} if reference:
            pass
        case {"allOf": [{"$ref": str(reference)}]}:
            pass
        case _:
            return ""
    return reference.rpartition("/")[2]


def _get_typed(holder: Document, key: str, kind: type[Any], pointer: str) -> Any:
    """The value at ``key``; None if absent. Raises InvalidDocument for another JSON type."""
    value = holder.get(key)
    if value is not None and not isinstance(value, kind):
        raise InvalidDocument(f"not {_JSON_NAMES[kind]}", pointer=f"{pointer}/{key}")
    return value


_JSON_NAMES: Final[Mapping[type[Any], str]] = {dict: "an object", str: "a string", bool: "a boolean"}


def _drop_absent(fields: Document) -> Document:
    return {key: value for key, value in fields.items() if value is not None}

"""Decode metadata of custom resources and embedded objects as ObjectMeta (apiextensions,
pkg/apiserver/schema/objectmeta: coerce.go, algorithm.go)."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any, Final

from specmux_converters.crd.templates import META_SCHEMAS, PREFIX
from specmux_converters.go.text import INT64_MAX, Number, float_text
from specmux_converters.json_values import mapping
from specmux_tools.validation.decoding.decoding_state import Decoding, StrictError, unknown_field
from specmux_tools.validation.decoding.typed_nodes import Node, mismatch_text
from specmux_tools.validation.decoding.typed_schemas import TypedSchemas
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.field_errors import invalid
from specmux_tools.validation.report import Path, path_text
from specmux_tools.validation.schema.structural import Structural, walk

_EMPTY: Final[tuple[Any, ...]] = ("", 0, [], {}, None)


@cache
def object_meta() -> Node:
    """ObjectMeta of the bundled Kubernetes release; a document's own may be older."""
    return TypedSchemas({"components": {"schemas": dict(META_SCHEMAS)}}).node(f"{PREFIX}ObjectMeta")


def unknown_in_metadata(
    metadata: Any, path: Path = ("metadata",), place: str = "metadata"
) -> list[StrictError]:
    """Raises Undecodable for anything but an ObjectMeta. Sorted by key, since Go serializes the value
    again."""
    node = object_meta()
    state = Decoding()
    value = marshal(metadata)
    node.decode(value, state)
    fault = state.mismatch
    if fault is not None:
        others = [each for each in state.mismatches if each != fault]
        raise Undecodable(
            mismatch_text(node, fault),
            path=(*path, *fault.path),
            others=[(mismatch_text(node, each), (*path, *each.path)) for each in others],
        )
    return [unknown_field((*path, *error.path), f"{place}.{path_text(error.path)}") for error in state.strict]


def unknown_in_embedded(value: Any, schema: Structural) -> list[StrictError]:
    """Unknown fields of objects embedded in ``value``, sorted. Raises Undecodable for invalid metadata."""
    found = [
        unknown
        for item, inner, path, place in walk(value, schema, attrgetter("has_embedded"))
        if inner.is_embedded and isinstance(item, dict)
        for unknown in _unknown_in_object(item, path, place)
    ]
    return sorted(found, key=lambda unknown: unknown.text[:-1])


def without_empty_metadata(value: Any, schema: Structural | None) -> Any:
    """The object, in whose embedded objects metadata has no empty fields: Go omits them when it writes
    ObjectMeta back. A copy if anything was dropped."""
    if schema is None or not schema.has_embedded:
        return value
    if type(value) is list:
        return [without_empty_metadata(item, schema.items) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {
        key: without_empty_metadata(item, schema.properties.get(key) or schema.additional)
        for key, item in value.items()
    }
    if schema.is_embedded and "metadata" in changed:
        metadata, defined = changed["metadata"], schema.properties.get("metadata")
        if metadata is not None or defined is None or not defined.is_defined:  # else it is dropped
            changed["metadata"] = {k: item for k, item in mapping(metadata).items() if item not in _EMPTY}
    return changed


def _unknown_in_object(value: dict[str, Any], path: Path, place: str) -> list[StrictError]:
    prefix = f"{place}." if place else ""
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            text = invalid(prefix + key, value[key], "must be a string")
            raise Undecodable(text, path=(*path, key))
    if "metadata" not in value:
        return []
    try:
        return unknown_in_metadata(value["metadata"], (*path, "metadata"), f"{prefix}metadata")
    except Undecodable as error:
        text = invalid(f"{prefix}metadata", value["metadata"], error.text)
        raise Undecodable(text, path=error.path, others=error.others) from error


def marshal(value: Any) -> Any:
    """The value after serialization and parsing in Go: keys sorted, whole floats as integers."""
    if isinstance(value, dict):
        return {key: marshal(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [marshal(item) for item in value]
    if isinstance(value, float):
        text = float_text(float(value))
        is_integer = "." not in text and "e" not in text and -INT64_MAX - 1 <= float(value) < INT64_MAX
        return int(text) if is_integer else Number(text)
    return value

"""Decode metadata of custom resources and embedded objects as ObjectMeta (apiextensions,
pkg/apiserver/schema/objectmeta: coerce.go, algorithm.go)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from specmux_converters.crd.templates import META_SCHEMAS, PREFIX
from specmux_converters.go.text import INT64_MAX, Number, float_text
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.decoding.decoding_state import Decoding
from specmux_tools.validation.decoding.typed_nodes import Node, mismatch_text
from specmux_tools.validation.decoding.typed_schemas import TypedSchemas
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.field_errors import invalid
from specmux_tools.validation.report import Path, path_text
from specmux_tools.validation.schema.structural import Structural

_EMPTY: Final[tuple[Any, ...]] = ("", 0, [], {}, None)


@dataclass(frozen=True, slots=True)
class UnknownMetadataField:
    """``place``: the path in the message's form, with keys of maps in brackets."""

    path: Path
    place: str


@cache
def object_meta() -> Node:
    """ObjectMeta of the bundled Kubernetes release; a document's own may be older."""
    return TypedSchemas({"components": {"schemas": dict(META_SCHEMAS)}}).node(f"{PREFIX}ObjectMeta")


def unknown_in_metadata(
    metadata: Any, path: Path = ("metadata",), place: str = "metadata"
) -> list[UnknownMetadataField]:
    """Raises Undecodable for anything but an ObjectMeta. Sorted by key, since Go serializes the value
    again."""
    node = object_meta()
    state = Decoding()
    value = marshalled(metadata)
    node.decode(value, state)
    fault = state.mismatch
    if fault is not None:
        others = [each for each in state.mismatches if each is not fault and each != fault]
        raise Undecodable(
            mismatch_text(node, fault),
            path=(*path, *fault.path),
            others=[(mismatch_text(node, each), (*path, *each.path)) for each in others],
        )
    return [
        UnknownMetadataField((*path, *error.path), f"{place}.{path_text(error.path)}")
        for error in state.strict
    ]


def unknown_in_embedded(value: Any, schema: Structural) -> list[UnknownMetadataField]:
    """Unknown fields of objects embedded in ``value``, sorted. Raises Undecodable for invalid metadata."""
    found: list[UnknownMetadataField] = []
    if schema.has_embedded:
        _coerce(value, schema, (), "", found)
    return sorted(found, key=lambda unknown: unknown.place)


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
            kept = {key: item for key, item in mapping(metadata).items() if item not in _EMPTY}
            changed["metadata"] = kept
    return changed


def _coerce(
    value: Any, schema: Structural, path: Path, place: str, found: list[UnknownMetadataField]
) -> None:
    if isinstance(value, dict):
        if schema.is_embedded:
            _coerce_meta(value, path, place, found)
        for key, item in value.items():
            inner = schema.properties.get(key)
            if inner is not None:
                _coerce_inner(item, inner, (*path, key), f"{place}.{key}" if place else key, found)
            elif schema.additional is not None:
                _coerce_inner(item, schema.additional, (*path, key), f"{place}[{key}]", found)
    elif type(value) is list and schema.items is not None:
        for index, item in enumerate(value):
            _coerce_inner(item, schema.items, (*path, index), f"{place}[{index}]", found)


def _coerce_inner(
    value: Any, schema: Structural, path: Path, place: str, found: list[UnknownMetadataField]
) -> None:
    if schema.has_embedded:
        _coerce(value, schema, path, place, found)


def _coerce_meta(value: dict[str, Any], path: Path, place: str, found: list[UnknownMetadataField]) -> None:
    prefix = f"{place}." if place else ""
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            text = invalid(prefix + key, value[key], "must be a string")
            raise Undecodable(text, path=(*path, key))
    if "metadata" in value:
        try:
            found += unknown_in_metadata(value["metadata"], (*path, "metadata"), f"{prefix}metadata")
        except Undecodable as error:
            text = invalid(f"{prefix}metadata", value["metadata"], error.text)
            raise Undecodable(text, path=error.path, others=error.others) from error


def marshalled(value: Any) -> Any:
    """The value after serialization and parsing in Go: keys sorted, whole floats as integers."""
    if isinstance(value, dict):
        return {key: marshalled(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [marshalled(item) for item in value]
    if isinstance(value, float):
        text = float_text(float(value))
        is_integer = "." not in text and "e" not in text and -INT64_MAX - 1 <= float(value) < INT64_MAX
        return int(text) if is_integer else Number(text)
    return value

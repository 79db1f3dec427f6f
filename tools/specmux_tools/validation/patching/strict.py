"""Strict decoding of patches, and of objects that a patch made (KEP-2885).

Sources: apiserver pkg/endpoints/handlers/patch.go, apimachinery pkg/runtime/converter.go.
"""

from __future__ import annotations

from typing import Any, Final

from specmux_tools.validation.decoding.decoding_state import Decoding
from specmux_tools.validation.decoding.embedded import marshal
from specmux_tools.validation.decoding.json_reader import read_json
from specmux_tools.validation.decoding.type_meta import kind_of
from specmux_tools.validation.decoding.typed_nodes import (
    Boolean,
    Bytes,
    Float,
    Integer,
    Interface,
    IntOrString,
    List,
    Map,
    Node,
    Quantity,
    Struct,
    Text,
    Time,
    mismatch_text,
)
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.report import Path, path_text

_JSON_PATCH: Final = List(
    Struct(
        "handlers.jsonPatchOp",
        "jsonPatchOp",
        {"op": Text(), "path": Text(), "from": Text(), "value": Interface()},
    )
)
_MERGE_PATCH: Final = Map(Interface())


def strict_errors_of_json_patch(body: bytes) -> list[str]:
    """Checks the patch document itself (RFC 6902). Raises Undecodable."""
    return [f"json patch {text}" for text in _decode(body, _JSON_PATCH)]


def strict_errors_of_merge_patch(body: bytes) -> list[str]:
    """Checks the patch document itself (RFC 7386), for duplicates only. Raises Undecodable."""
    return _decode(body, _MERGE_PATCH)


def _decode(body: bytes, node: Node) -> list[str]:
    state = Decoding()
    node.decode(read_json(body), state)
    if state.mismatch is not None:
        raise Undecodable(mismatch_text(node, state.mismatch), path=state.mismatch.path)
    return [error.text for error in state.strict]


def strict_errors_of_converted(value: Any, node: Node) -> list[str]:
    """Checks an object that is converted to its Go type from plain JSON, such as the result of a strategic
    merge patch.

    Sorted by text; paths contain no map keys. Raises Undecodable.
    """
    found: list[str] = []
    _convert(marshal(value), node, (), found)
    return sorted(found)


def _convert(value: Any, node: Node, path: Path, found: list[str]) -> None:
    if value is None:
        return
    match node:
        case Struct():
            _convert_struct(value, node, path, found)
        case Map():
            _restore(isinstance(value, dict), "map from", value)
            for item in value.values():
                _convert(item, node.value, path, found)
        case List():
            _restore(type(value) is list, "slice from", value)
            for index, item in enumerate(value):
                _convert(item, node.item, (*path, index), found)
        case Bytes():
            _restore(isinstance(value, str), "slice from", value)
            _convert_by_reader(value, node, "error decoding from json: ")
        case Text() | Boolean() | Integer() | Float():
            _convert_scalar(value, node)
        case Time() | Quantity() | IntOrString():
            _convert_by_reader(value, node)


def _convert_struct(value: Any, node: Struct, path: Path, found: list[str]) -> None:
    _restore(isinstance(value, dict), "struct from:", value)
    for key, item in value.items():
        inner = node.fields.get(key)
        if inner is not None:
            _convert(item, inner, (*path, key), found)
        elif not node.is_open:
            found.append(f'unknown field "{path_text((*path, key))}"')


def _restore(fits: bool, what: str, value: Any) -> None:
    if not fits:
        raise Undecodable(f"cannot restore {what} {_go_kind(value)}")


def _convert_scalar(value: Any, node: Text | Boolean | Integer | Float) -> None:
    kind = _go_kind(value)
    wanted = {Text: "string", Boolean: "bool", Float: "float64"}.get(type(node), node.go_type)
    if kind == wanted or (kind == "int64" and isinstance(node, Integer | Float)):
        return
    if kind == "float64" and isinstance(node, Integer):
        if not float(value).is_integer():
            raise Undecodable(f"cannot convert float64 to {wanted}")
        return
    if kind == "int64" and wanted == "string":
        raise Undecodable(f"cannot convert int64 to {node.go_type}")
    raise Undecodable(f"unrecognized type: {wanted}")


def _convert_by_reader(value: Any, node: Node, prefix: str = "") -> None:
    """Types with a JSON decoder of their own receive the JSON."""
    state = Decoding()
    node.decode(value, state)
    if state.mismatch is not None:
        raise Undecodable(prefix + mismatch_text(Interface(), state.mismatch))


def _go_kind(value: Any) -> str:
    """reflect.Kind of a plain JSON value."""
    kinds = {"object": "map", "array": "slice", "number": "int64" if isinstance(value, int) else "float64"}
    return kinds.get(kind_of(value), kind_of(value))

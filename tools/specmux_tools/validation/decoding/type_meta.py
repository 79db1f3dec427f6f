"""The kind of a body, the first step of an apiserver (apimachinery, serializer/json/meta.go), and Go's names
of types."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.resources import NO_KIND, GroupVersionKind
from specmux_tools.validation.decoding.json_reader import pairs_of
from specmux_tools.validation.errors import Undecodable

_STRUCT: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_PREFIX: Final = "couldn't get version/kind; json parse error: "
_FIELDS: Final = {"apiversion": "apiVersion", "kind": "kind"}
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def json_error(text: str) -> str:
    """The complete message for a body that is not JSON."""
    return _PREFIX + text


def read_type_meta(value: Any) -> GroupVersionKind:
    """The kind that a body states, "" for absent fields. Raises Undecodable for a value that is not an
    object, and for an apiVersion or kind that is not a string.

    Field names are matched ignoring case, only here: this part uses Go's own decoder.
    """
    if value is None:
        return NO_KIND
    if not isinstance(value, dict):
        raise Undecodable(
            _PREFIX + f"json: cannot unmarshal {kind_of(value)} into Go value of type {_STRUCT}"
        )
    found = {"apiVersion": "", "kind": ""}
    fault = None
    for key, item in pairs_of(value):
        name = key if key in found else _FIELDS.get(key.lower())
        if name is None or item is None:
            continue
        if isinstance(item, str):
            found[name] = item
        elif fault is None:
            text = f"json: cannot unmarshal {kind_of(item)} into Go struct field .{name} of type string"
            fault = Undecodable(_PREFIX + text, path=(key,))
    if fault is not None:
        raise fault
    return GroupVersionKind(*parse_group_version(found["apiVersion"]), found["kind"])


def parse_group_version(text: str) -> tuple[str, str]:
    """Raises Undecodable for more than one slash."""
    if text in ("", "/"):
        return "", ""
    parts = text.split("/")
    if len(parts) > 2:
        raise Undecodable(f"unexpected GroupVersion string: {text}", path=("apiVersion",))
    return (parts[0], parts[1]) if len(parts) == 2 else ("", text)


def kind_of(value: Any) -> str:
    """Go's name for the type of a JSON value."""
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "bool"
        case None:
            return "null"
        case _:
            return "number"


def go_type_of(value: Any) -> str:
    """The Go type of a decoded JSON value. A number that keeps its text is a float."""
    return next((name for kind, name in _GO_TYPES.items() if isinstance(value, kind)), "%!s(<nil>)")

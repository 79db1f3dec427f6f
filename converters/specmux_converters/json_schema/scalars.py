"""Values that Kubernetes accepts for a string or number, by format and by component.

The patterns use the syntax common to RE2, ECMA-262, Python and Rust, and describe what Go accepts:
``resource.ParseQuantity``, ``encoding/base64`` (which ignores newlines), ``time.Parse``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_schema.forms import Schema

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_DIGITS: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SUFFIX: Final = r"(?:[KMGTPE]i|[eE][+\-]?[0-9]+|[numkMGTPE])"
_LONE_SUFFIX: Final = r"(?:[KMGT]i|[eE][+\-]?[0-9]+|[numkMGTPE])"
"""Go reads a suffix without digits as zero, except for the two largest."""
_BREAK: Final = r"[\r\n]*"
_BYTE: Final = r"[A-Za-z0-9+/]"
_SECOND: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]"
_ZONE: Final = r"(?:Z|[+\-][0-9]{2}:[0-9]{2})$"

_INT32: Final[Schema] = {"minimum": -(2**31), "maximum": 2**31 - 1}

QUANTITY: Final[Schema] = {
    "type": ["string", "number"],
    "minLength": 1,
    "pattern": rf"^ *(?:[+\-]?(?:{_DIGITS}{_SUFFIX}?|\.?{_LONE_SUFFIX}|\.)|[+\-]) *$",
}
INT_OR_STRING: Final[Schema] = {"type": ["integer", "string"], **_INT32}

GO_BASE64: Final[str] = (
    rf"^{_BREAK}(?:{f'{_BYTE}{_BREAK}' * 4})*"
    rf"(?:{f'{_BYTE}{_BREAK}' * 2}={_BREAK}={_BREAK}|{f'{_BYTE}{_BREAK}' * 3}={_BREAK})?$"
)
"""Base64 in fields of Go types."""

STRFMT_BASE64: Final = rf"^(?:{_BYTE}{{4}})*(?:{_BYTE}{{2}}==|{_BYTE}{{3}}=|{_BYTE}{{4}})$"
"""Base64 in fields of custom resources (go-openapi/strfmt), which must not be empty."""

BY_COMPONENT: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    f"{META}.Time": {
        "type": "string",
        "format": "date-time",
        "pattern": rf"{_SECOND}(?:\.[0-9]+)?{_ZONE}",
    },
    f"{META}.MicroTime": {
        "type": "string",
        "format": "date-time",
        "pattern": rf"{_SECOND}\.[0-9]{{6}}{_ZONE}",
    },
}

_KNOWN: Final = frozenset(("date-time", "date", "email", "hostname", "ipv4", "ipv6", "uri-reference"))
"""Formats of draft-07 with the same meaning in Kubernetes."""

_FORMATS: Final[Mapping[str, Schema]] = {
    "uri": {"format": "uri-reference"},
    "datetime": {"format": "date-time"},
} | {name: {"format": name} for name in _KNOWN}


def format_of(schema: Mapping[str, Any], *, base64: str) -> Mapping[str, Any]:
    """The schema's ``format`` in keywords of draft-07; empty for an unknown one."""
    name = schema.get("format")
    if name == "byte":
        return {"pattern": base64} if "pattern" not in schema else {}
    if name == "int32":
        return _narrow_bounds(schema)
    return _FORMATS.get(name, {}) if isinstance(name, str) else {}


def _narrow_bounds(schema: Mapping[str, Any]) -> Schema:
    """The bounds of int32, unless the schema has narrower ones."""
    least, most = schema.get("minimum"), schema.get("maximum")
    written: Schema = {}
    if not isinstance(least, int | float) or least < _INT32["minimum"]:
        written["minimum"] = _INT32["minimum"]
    if not isinstance(most, int | float) or most > _INT32["maximum"]:
        written["maximum"] = _INT32["maximum"]
    return written

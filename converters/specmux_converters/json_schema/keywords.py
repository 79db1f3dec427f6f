"""Keywords that draft-07 and OpenAPI 3.0 share, or express differently; the values that Kubernetes accepts
for a string or number, by format and by component; and unions.

The patterns use the syntax common to RE2, ECMA-262, Python and Rust, and describe what Go accepts:
``resource.ParseQuantity``, ``encoding/base64`` (which ignores newlines), ``time.Parse``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.regexp_portable import portable
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_values import mapping
from specmux_converters.unions import Member, Union, UnionForm, declared_unions

_PLAIN: Final = frozenset(
    (
        "title",
        "description",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    )
)
COMBINATORS: Final = ("allOf", "anyOf", "oneOf", "not")
_DEPRECATED: Final = re.compile(r"(?:^|(?<=\s))(?i:deprecated)[:.]\s*(?P<text>[^\n]*)")
NULL: Final[Schema] = {"type": "null"}
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

_OF_KUBERNETES: Final = "io.k8s.api."
"""Published values of other components may be names of Go fields: they count only if an enum lists them."""


def combinators_of(mode: Mode) -> tuple[str, ...]:
    """Combinators that stay valid when nothing is required; ``oneOf`` and ``not`` would refuse the
    opposite."""
    return COMBINATORS if mode.requires else ("allOf", "anyOf")


def plain_keywords(schema: Mapping[str, Any]) -> Schema:
    """Keywords with the same meaning in both, and bounds and patterns in the form of draft-07."""
    written = {key: value for key, value in schema.items() if key in _PLAIN and value is not None}
    if "description" in written:
        written |= deprecation(written["description"])
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if schema.get(exclusive) is True and bound in written:
            written[exclusive] = written.pop(bound)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        shared = portable(pattern)
        written |= {"x-kubernetes-pattern": pattern} if shared is None else {"pattern": shared}
    return written


def deprecation(description: Any) -> Schema:
    """The keywords by which editors mark a field as deprecated (VS Code, yaml-language-server)."""
    # A cheap check: most descriptions do not match, and the expression is slow to find that out.
    if not isinstance(description, str) or "eprecated" not in description.lower():
        return {}
    found = _DEPRECATED.search(description)
    return {"deprecationMessage": found["text"].strip() or "deprecated"} if found else {}


def with_null(schema: Schema) -> Schema:
    """The schema with null allowed. A schema without a type already allows it."""
    if "$ref" in schema or any(key in schema for key in COMBINATORS):
        return _alternative(schema)
    named = schema.get("type")
    if named is None:
        return {**schema, "enum": [*schema["enum"], None]} if "enum" in schema else schema
    types = named if isinstance(named, list) else [named]
    wider: Schema = {**schema, "type": [*types, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        wider["enum"] = [*schema["enum"], None]
    return wider


def _alternative(schema: Schema) -> Schema:
    shown: Schema = {
        key: schema[key] for key in ("title", "description", "deprecationMessage") if key in schema
    }
    return {**shown, "anyOf": [schema, NULL]}


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


def with_unions(written: Schema, schema: Mapping[str, Any], component: str, mode: Mode) -> Schema:
    """``written`` with the requirements of ``schema``'s unions, where they can be expressed exactly.

    Only those of ``x-kubernetes-unions``: ``oneOf`` is kept unchanged. Null counts as absent."""
    if not mode.requires:
        return written
    clauses = [
        clause
        for union in declared_unions(schema, component).unions
        if union.form is UnionForm.EXTENSION and _is_exact(union, schema, component)
        for clause in _clauses(union)
    ]
    return {**written, "allOf": [*written.get("allOf", ()), *clauses]} if clauses else written


def _is_exact(union: Union, schema: Mapping[str, Any], component: str) -> bool:
    """False if a field has a default, since it is then always present."""
    fields = mapping(schema.get("properties"))
    named = (*union.fields, *(() if union.discriminator is None else (union.discriminator,)))
    if any(isinstance(fields.get(name), dict) and fields[name].get("default") for name in named):
        return False
    is_known = component.startswith(_OF_KUBERNETES) or union.allowed is not None
    return union.discriminator is None or is_known


def _clauses(union: Union) -> Iterator[Schema]:
    if union.discriminator is None:
        yield {"oneOf": [_set(member.field) for member in union.members]}
        return
    for member in union.members:
        yield _by_value(union.discriminator, member)


def _by_value(discriminator: str, member: Member) -> Schema:
    selects = {"required": [discriminator], "properties": {discriminator: {"enum": [member.value]}}}
    unset = {"properties": {member.field: NULL}}
    then = {} if member.is_optional else {"then": _set(member.field)}
    return {"if": selects, **then, "else": unset}


def _set(field: str) -> Schema:
    return {"required": [field], "properties": {field: {"not": NULL}}}

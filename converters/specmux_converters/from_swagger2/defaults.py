"""Check whether a default is valid under its own schema.

Kubernetes before 1.25 published ``default: {}`` for every struct, even one that is a string; grpc-gateway
writes numbers as strings. OpenAPI 3.0 makes such a document invalid.

This checks what validators reject in practice, not all of JSON Schema: patterns with Go's semantics, in time
linear in the text; the formats of OpenAPI 3.0 (4.4) and JSON Schema (Wright-00, section 7.3) that validators
check without further libraries; nothing below ``not``.
"""

from __future__ import annotations

import re
from base64 import b64decode
from calendar import monthrange
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from specmux_converters.from_swagger2.reading.fields import identity
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.go.regexp import Pattern, UndecidedMatch
from specmux_converters.json_values import array, mapping
from specmux_converters.losses import tokens_of

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(
    r"[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


_STEP_COST: Final = 256
"""Bytes of the budget for following a reference or trying an alternative: a schema that refers to itself
twice would take forever."""

_CHOICE_COST: Final = 8
"""Cost of a value of an ``enum``."""

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "file": (str,),
    "null": (type(None),),
}

_SIZES: Final[dict[type, tuple[str, str]]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}
_PATTERN_MAX: Final = 1000
"""Characters of the longest pattern that is checked."""
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_BARE: Final = frozenset({"$ref", "default", "description"})
"""Keywords beside a reference that do not change the meaning of its target."""


def fits(
    value: Any, schema: Any, source: SwaggerSource, trace: Trace, seen: frozenset[str] = frozenset()
) -> bool:
    """``schema``: in Swagger 2.0. ``seen``: references followed without a step into ``value``."""
    if not isinstance(schema, dict):
        return True
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith("#") and ref not in seen:
        trace.foreign.append(ref)
        if not _fits_target(value, ref, source, trace, seen):
            return False
        if value is not None and schema.keys() <= _BARE:
            return True
    if value is None and (schema.get("x-nullable") is True or schema.get("nullable") is True):
        return True
    if not _has_type(value, schema.get("type")) or not _in_bounds(value, schema, trace):
        return False
    if "format" in schema and not has_format(value, schema["format"]):
        return False
    if not _LISTS.isdisjoint(schema):
        for part in array(schema.get("allOf")):
            trace.spend(_STEP_COST)
            if not fits(value, part, source, trace, seen):
                return False
        for key in ("anyOf", "oneOf"):
            parts = array(schema.get(key))
            if parts and not _fits_one(value, parts, source, trace, seen):
                return False
    if isinstance(value, str):
        pattern = schema.get("pattern")
        return not isinstance(pattern, str) or _has_pattern(value, pattern, trace)
    if isinstance(value, list):
        if schema.get("uniqueItems") is True and len({*map(identity, value)}) < len(value):
            return False
        return _items_fit(value, schema.get("items"), source, trace)
    return not isinstance(value, dict) or _members_fit(value, schema, source, trace)


def _has_pattern(value: str, pattern: str, trace: Trace) -> bool:
    trace.spend(_STEP_COST)
    try:
        if len(pattern) <= _PATTERN_MAX:
            return Pattern(pattern).matches(value)
    except UndecidedMatch:
        pass
    trace.note("default", "not known whether it fits its pattern; kept")
    return True


def _items_fit(value: list[Any], items: Any, source: SwaggerSource, trace: Trace) -> bool:
    """A schema per position becomes one schema for all items in v3, which each item must fit."""
    if isinstance(items, dict):
        return all(fits(item, items, source, trace) for item in value)
    if not isinstance(items, list) or not items:
        return True
    return all(_fits_one(item, items, source, trace, frozenset()) for item in value)


def _fits_one(
    value: Any, schemas: list[Any], source: SwaggerSource, trace: Trace, seen: frozenset[str]
) -> bool:
    for schema in schemas:
        trace.spend(_STEP_COST)
        if fits(value, schema, source, trace, seen):
            return True
    return False


def _fits_target(value: Any, ref: str, source: SwaggerSource, trace: Trace, seen: frozenset[str]) -> bool:
    """Cached for the empty object, which some documents have for every struct."""
    known = source.fit_empty.get(ref) if value == {} else None
    if known is not None:
        return known
    trace.spend(_STEP_COST)
    found = fits(value, source.resolve(tokens_of(ref)), source, trace, seen | {ref})
    if value == {} and not seen:
        source.fit_empty[ref] = found
    return found


def _has_type(value: Any, kind: Any) -> bool:
    if kind is None and value is not None:
        return True
    if kind.__class__ is str and value.__class__ in _CLASSES.get(kind, ()):
        return True
    kinds = kind if isinstance(kind, list) else [kind]
    classes = [cls for each in kinds if isinstance(each, str) for cls in _CLASSES.get(each, ())]
    if value is None and "null" not in kinds:
        return False
    return (
        not classes
        or value.__class__ in classes
        or (value.__class__ is float and int in classes and value == int(value))
    )


def _in_bounds(value: Any, schema: dict[str, Any], trace: Trace) -> bool:
    enum = schema.get("enum")
    if isinstance(enum, list) and enum:
        trace.spend(_CHOICE_COST * len(enum))
        if value not in enum:
            return False
    if value.__class__ in (int, float):
        return _number_in_bounds(value, schema)
    sizes = _SIZES.get(value.__class__)
    if sizes is None:
        return True
    low, high = sizes
    if low not in schema and high not in schema:
        return True
    return len(value) >= _number(schema.get(low), 0) and len(value) <= _number(schema.get(high), len(value))


def _number_in_bounds(value: float, schema: dict[str, Any]) -> bool:
    low, high = _number(schema.get("minimum"), value), _number(schema.get("maximum"), value)
    multiple = schema.get("multipleOf")
    if multiple.__class__ is int and multiple > 0 and value % multiple:
        return False
    if value < low or (value == low and "minimum" in schema and schema.get("exclusiveMinimum") is True):
        return False
    return value < high or (
        value == high and not ("maximum" in schema and schema.get("exclusiveMaximum") is True)
    )


def _number(bound: Any, otherwise: float) -> float:
    return bound if bound.__class__ in (int, float) else otherwise


def _members_fit(value: dict[str, Any], schema: dict[str, Any], source: SwaggerSource, trace: Trace) -> bool:
    required = schema.get("required")
    if isinstance(required, list) and any(isinstance(name, str) and name not in value for name in required):
        return False
    if not value:
        return True
    known = mapping(schema.get("properties"))
    other = schema.get("additionalProperties", True)
    for name, member in value.items():
        if name in known:
            if not fits(member, known[name], source, trace):
                return False
        elif other is False or not fits(member, other, source, trace):
            return False
    return True


def has_format(value: Any, name: Any) -> bool:
    known = FORMATS.get(name) if name.__class__ is str else None
    if known is None or value.__class__ is not known[0]:
        return True
    try:
        return known[1](value) is not False
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    """RFC 3339, full-date. Raises ValueError for a nonexistent date."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= day <= monthrange(year, month)[1]


def _is_date_time(text: str) -> bool:
    return _is_date(text[:10]) and _TIME.fullmatch(text, 10) is not None


FORMATS: Final[Mapping[str, tuple[type, Callable[[Any], object]]]] = {
    "int32": (int, lambda number: -(2**31) <= number < 2**31),
    "int64": (int, lambda number: -(2**63) <= number < 2**63),
    "byte": (str, lambda text: b64decode(text.encode("ascii"), validate=True)),
    "date": (str, _is_date),
    "date-time": (str, _is_date_time),
    "email": (str, lambda text: "@" in text),
    "ipv4": (str, IPv4Address),
    "ipv6": (str, IPv6Address),
    "uuid": (str, lambda text: _UUID.fullmatch(text) is not None),
}
"""The type to which a format applies, and a function that returns False or raises ValueError for an invalid
value."""

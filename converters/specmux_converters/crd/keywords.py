"""Keywords of a CRD's schema without subschemas, and their permitted values.

JSONSchemaProps of apiextensions.k8s.io/v1 is a Go struct: a value of the wrong type is refused, null means
absent, and false or empty values are omitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import inf, isfinite
from sys import float_info
from typing import Any, Final, TypeVar

T = TypeVar("T")

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})

PRESERVE_UNKNOWN_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED_RESOURCE: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
DEFINED_FIELDS: Final = "x-specmux-defined-fields"
"""apiVersion, kind and metadata as a definition describes them, in documents that are not served: apiservers
check by these schemas and publish their own in their place."""

_EXACT: Final = 2**53
"""Integers up to here are exact as doubles."""
_WHOLE: Final = range(-(2**63), 2**64)
"""Values serialized as integers; others are doubles (``document.parse``)."""
_LARGEST: Final = int(float_info.max)


def without_defined_fields(value: Any) -> Any:
    """A document as it would be served, of one that keeps what definitions say."""
    if isinstance(value, list):
        return [without_defined_fields(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: without_defined_fields(each) for key, each in value.items() if key != DEFINED_FIELDS}


def _checked(kind: type[T], words: str) -> Callable[[Any], T]:
    """A reader of values of one type, which have a meaning even if false or empty: upstream uses pointers."""

    def read(value: Any) -> T:
        if not isinstance(value, kind):
            raise ValueError(f"must be {words}")
        return value

    return read


_name: Final = _checked(str, "a string")
_boolean: Final = _checked(bool, "a boolean")
_list: Final[Callable[[Any], list[Any]]] = _checked(list, "an array")


def text(value: Any) -> str | None:
    return _name(value) or None


def _type(value: Any) -> str | None:
    if text(value) is not None and value not in TYPES:
        raise ValueError(f"must be one of {', '.join(sorted(TYPES))}")
    return value or None


def _flag(value: Any) -> bool | None:
    return _boolean(value) or None


def _preserve(value: Any) -> bool:
    if value is not True:
        raise ValueError("must be true or undefined")
    return True


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return _double(value)


def _double(value: int | float) -> int | float:
    """``value`` as a double, serialized as in Go: without a fraction if it is whole."""
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return value
    double = float(value) if abs(value) <= _LARGEST else inf
    if not isfinite(double):
        raise ValueError("must fit in a double")
    if not double.is_integer():
        return double
    digits = int(Decimal(repr(double)))
    return digits if digits in _WHOLE else double


def _count(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be an integer")
    if not _is_int64(value):
        raise ValueError("must fit in 64 bits")
    return value


def _texts(value: Any) -> list[str] | None:
    """A null among them becomes an empty string: Go decodes it to the zero value."""
    if not isinstance(value, list) or not all(each is None or isinstance(each, str) for each in value):
        raise ValueError("must be an array of strings")
    return [each or "" for each in value] or None


def _values(value: Any) -> list[Any] | None:
    values: list[Any] = _json(_list(value))
    return values or None


def _json(value: Any) -> Any:
    """Any value: numbers other than int64 are doubles (apimachinery, util/json), so 1.0 is written as 1."""
    match value:
        case bool() | str() | None:
            return value
        case int() | float():
            return value if isinstance(value, int) and _is_int64(value) else _double(value)
        case list():
            return [_json(each) for each in value]
        case dict():
            return {key: _json(each) for key, each in value.items()}
        case _:
            raise ValueError("must be JSON")


def _is_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _rules(value: Any) -> list[dict[str, Any]] | None:
    rules = [_rule({} if each is None else each) for each in _list(value)]
    return rules or None


def _rule(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be an array of rules")
    rule: dict[str, Any] = {"rule": ""}
    for key, read in _RULE.items():
        content = None if value.get(key) is None else read(value[key])
        if content is not None:
            rule[key] = content
    return rule


def _external_docs(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    read = {key: text(value[key]) for key in ("description", "url") if value.get(key) is not None}
    return {key: said for key, said in read.items() if said is not None}


def _absent(value: Any) -> None:
    """A keyword that makes a schema non-structural unless it is empty."""
    if not isinstance(value, str | dict) or value:
        raise ValueError("is not supported in a CustomResourceDefinition")


def _never(value: Any) -> None:
    raise ValueError("is not supported in a CustomResourceDefinition")


_RULE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "rule": text,
    "message": text,
    "messageExpression": text,
    "reason": text,
    "fieldPath": text,
    "optionalOldSelf": _boolean,
}

KEYWORDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "type": _type,
    "description": text,
    "title": text,
    "default": _json,
    "nullable": _flag,
    "format": text,
    "maximum": _number,
    "minimum": _number,
    "multipleOf": _number,
    "exclusiveMaximum": _flag,
    "exclusiveMinimum": _flag,
    "maxLength": _count,
    "minLength": _count,
    "maxItems": _count,
    "minItems": _count,
    "maxProperties": _count,
    "minProperties": _count,
    "uniqueItems": _flag,
    "enum": _values,
    "required": _texts,
    PRESERVE_UNKNOWN_FIELDS: _preserve,
    EMBEDDED_RESOURCE: _flag,
    INT_OR_STRING: _flag,
    "x-kubernetes-list-map-keys": _texts,
    "x-kubernetes-list-type": _name,
    "x-kubernetes-map-type": _name,
    "x-kubernetes-validations": _rules,
    "id": _absent,
    "$schema": _absent,
    "$ref": _absent,
    "patternProperties": _absent,
    "dependencies": _absent,
    "definitions": _absent,
    "additionalItems": _never,
}
"""The published value of a keyword; None to omit it. ValueError says what is wrong."""

DESCRIBING: Final[Mapping[str, Callable[[Any], Any]]] = {"example": _json, "externalDocs": _external_docs}
"""Kept in addition to KEYWORDS by upstream's structural schema since Kubernetes 1.36."""

UNIONS: Final[Mapping[str, Callable[[Any], Any]]] = {"x-kubernetes-unions": _json, "fieldMembers": _json}
"""Declarations of unions in the first drafts of KEP-1027. An apiserver keeps none of them."""

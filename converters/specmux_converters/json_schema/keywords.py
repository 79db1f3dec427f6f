"""Keywords that draft-07 and OpenAPI 3.0 share, or express differently."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.go.regexp_portable import portable
from specmux_converters.json_schema.forms import Mode, Schema

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

"""Details of a value beside its type and description: defaults, enums, limits, lists, rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.json_values import array, objects, text, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import operations_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.layers import Schema
from specmux_tools.unions import Union, unions_of

_LIMITS: Final = (
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)
_LIMIT_NAMES: Final = frozenset(_LIMITS)

_PLAIN: Final = frozenset(("type", "description", "allOf", "$ref", "properties", "required", "items"))
"""Keywords without details."""

_DEPRECATED: Final = re.compile(r"^[ \t]*((?:Deprecated|DEPRECATED)\b.*)", re.MULTILINE)
"""A sentence of its own. "deprecated indicates …" merely describes a field of that name."""


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """A rule of ``x-kubernetes-validations``."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """``default``: JSON text, so that a default of null differs from none."""

    default: str = ""
    enum: tuple[Any, ...] = ()
    limits: tuple[tuple[str, Any], ...] = ()
    format: str = ""
    list_type: str = ""
    """In words: "map by name, protocol", "set", "atomic"."""
    rules: tuple[DeclaredRule, ...] = ()
    unions: tuple[Union, ...] = ()
    """Groups of fields of which only one may be set."""
    is_nullable: bool = False
    preserves_unknown: bool = False
    deprecated: str = ""
    """The sentence in the description, or "yes" if the keyword is set."""


NO_DETAILS: Final = Details()


def details_of(said: Schema, element: Schema, component: str = "") -> Details:
    """The details in ``said``; for a list or map, also enum, format and limits of its elements.
    ``component``: that has the fields."""
    own, inner = _own(said, component), _own(element, component)
    if inner is NO_DETAILS:
        return own
    return replace(
        own,
        enum=own.enum or inner.enum,
        limits=own.limits + tuple((f"each {name}", value) for name, value in inner.limits),
        format=own.format or inner.format,
        rules=own.rules + inner.rules,
        unions=own.unions + inner.unions,
        preserves_unknown=own.preserves_unknown or inner.preserves_unknown,
    )


def _own(said: Schema, component: str) -> Details:
    deprecated = _deprecation_text(said)
    if _PLAIN.issuperset(said) and not deprecated:
        return NO_DETAILS
    return Details(
        default=orjson.dumps(said["default"]).decode() if "default" in said else "",
        enum=tuple(array(said.get("enum"))),
        limits=tuple(_limits(said)),
        format=text(said.get("format")),
        list_type=_list_type(said),
        rules=tuple(_rules(said)),
        unions=unions_of(said, component) if "properties" in said else (),
        is_nullable=said.get("nullable") is True,
        preserves_unknown=said.get("x-kubernetes-preserve-unknown-fields") is True,
        deprecated=deprecated,
    )


def _limits(said: Schema) -> Iterator[tuple[str, Any]]:
    for name in _LIMITS if not _LIMIT_NAMES.isdisjoint(said) else ():
        value = said.get(name)
        if value is not None and value is not False:
            yield name, value


def _list_type(said: Schema) -> str:
    kind = said.get("x-kubernetes-list-type")
    if kind == "map":
        keys = texts(said.get("x-kubernetes-list-map-keys"))
        return f"map by {', '.join(keys)}" if keys else "map"
    return text(kind)


def _rules(said: Schema) -> Iterator[DeclaredRule]:
    for entry in objects(said.get("x-kubernetes-validations")):
        if isinstance(entry.get("rule"), str):
            yield DeclaredRule(entry["rule"], text(entry.get("message")))


def _deprecation_text(said: Schema) -> str:
    described = said.get("description")
    if isinstance(described, str) and ("Deprecated" in described or "DEPRECATED" in described):
        line = _DEPRECATED.search(described)
        if line is not None:
            return line[1].strip()
    return "yes" if said.get("deprecated") is True else ""


def media_types_json(document: Document, kind: GroupVersionKind) -> list[dict[str, Any]]:
    """``verbs``, ``consumes``, ``produces``; operations of subresources are listed if they differ."""
    verbs: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    for each in operations_of(document, *astuple(kind)):
        if each.consumes or each.produces:
            verbs.setdefault((each.consumes, each.produces), {})[each.verb] = None
    return [
        {"verbs": list(names), "consumes": list(consumes), "produces": list(produces)}
        for (consumes, produces), names in verbs.items()
    ]


def media_type_lines(document: Document, kind: GroupVersionKind) -> Iterator[str]:
    for each in media_types_json(document, kind):
        parts = [("takes", each["consumes"]), ("gives", each["produces"])]
        told = "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts if names)
        yield f"{', '.join(each['verbs'])}: {told}"

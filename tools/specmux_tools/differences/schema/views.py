"""Schemas with every ``$ref`` and ``allOf`` resolved in place, one level at a time.

Siblings of a reference win for annotations and ``x-*``; constraints add up, as ``allOf`` defines. Component
names only record the origin of children: two documents never match by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.json_values import array
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import EMPTY, name_in, resolve_schema, schemas_of
from specmux_tools.kinds import group_version_kinds

_MOST_DEEP: Final = 64
"""Nested references and ``allOf``; anything deeper is unconstrained."""

_CHILDREN: Final = ("properties", "required", "items", "additionalProperties")


@dataclass(frozen=True, slots=True)
class View:
    """One resolved schema."""

    keywords: Mapping[str, Any]
    """The keywords without ``$ref``. ``allOf`` holds only what a single keyword cannot express
    (``conjuncts``). Children may still have either."""
    source: str | None
    """The component that all children come from; None if they are inline or come from several."""
    beside: Mapping[str, Any]
    """The siblings of the reference to ``source``."""


ANYTHING: Final = View(EMPTY, None, EMPTY)


class ComponentSchemas:
    """The components of one document, read-only."""

    def __init__(self, document: Document) -> None:
        self.components = schemas_of(document)
        self._views: dict[str, View] = {}
        self._kinds: dict[str, tuple[str, str] | None] = {}

    def view(self, schema: Any, depth: int = 0) -> View:
        """Returns an unconstrained view for what is not a schema, or refers to nothing or to itself."""
        if not isinstance(schema, dict) or depth > _MOST_DEEP:
            return ANYTHING
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = name_in(reference, "schemas")
            found = ANYTHING if name is None else self._component(name, depth)
            return _join_siblings(found, {key: schema[key] for key in schema if key != "$ref"})
        parts = schema.get("allOf")
        if not isinstance(parts, list):
            return View(schema, None, EMPTY)
        own = {key: value for key, value in schema.items() if key != "allOf"}
        views = [self.view(part, depth + 1) for part in parts]
        if len(views) == 1:
            return _join_siblings(views[0], own)
        merged = reduce(_merge_keywords, (view.keywords for view in views), EMPTY)
        return View(_merge_keywords(merged, own), None, EMPTY)

    def kind(self, schema: Any) -> tuple[str, str] | None:
        """The name and group of the kind that the schema describes; None if it is no kind."""
        if not isinstance(schema, dict):
            return None
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return _kind(resolve_schema(self.components, schema))
        if reference not in self._kinds:
            self._kinds[reference] = _kind(resolve_schema(self.components, schema))
        return self._kinds[reference]

    def _component(self, name: str, depth: int) -> View:
        known = self._views.get(name)
        if known is None:
            self._views[name] = ANYTHING  # the view of a reference cycle
            found = self.view(self.components.get(name), depth + 1)
            self._views[name] = known = View(found.keywords, name, EMPTY)
        return known


def _kind(schema: Mapping[str, Any]) -> tuple[str, str] | None:
    kinds = group_version_kinds(schema) if "x-kubernetes-group-version-kind" in schema else ()
    if not kinds:
        return None
    # Kinds of every group-version (DeleteOptions) list all groups of a server; count them as core.
    group = "" if any(not kind.group for kind in kinds) else min(kind.group for kind in kinds)
    return kinds[0].kind, group


def _join_siblings(view: View, own: Mapping[str, Any]) -> View:
    """``view`` combined with the siblings of the reference to it."""
    if not own:
        return view
    keywords = _merge_keywords(view.keywords, own)
    if any(key in own for key in _CHILDREN):
        return View(keywords, None, EMPTY)
    return View(keywords, view.source, {**view.beside, **own} if view.beside else own)


def _merge_keywords(part: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conjunction of both schemas; ``own`` is the outer one."""
    if not part:
        return own
    both = {**part, **own}
    apart = []
    for key in part.keys() & own.keys():
        if key in _JOINS:
            both[key] = _JOINS[key](part[key], own[key])
        elif key in _APART and part[key] != own[key]:
            apart.append({key: part[key]})
    for bound, flag in _EXCLUSIVE:
        _join_bounds(both, part, own, bound, flag)
    if apart:
        both["allOf"] = _JOINS["allOf"](both.get("allOf", []), sorted(apart, key=str))
    return both


def conjuncts(keywords: Mapping[str, Any], keyword: str) -> list[Any]:
    """Every value of the keyword that applies: its own, and those in the ``allOf`` of a View."""
    own = [keywords[keyword]] if keyword in keywords else []
    parts = array(keywords.get("allOf"))
    return own + [part[keyword] for part in parts if isinstance(part, dict) and keyword in part]


def _join_bounds(
    both: dict[str, Any], part: Mapping[str, Any], own: Mapping[str, Any], bound: str, flag: str
) -> None:
    """OpenAPI 3.0: exclusiveMinimum and exclusiveMaximum belong to the bound that applies."""
    if flag in both and True in (part.get(flag), own.get(flag)):
        holding = [schema for schema in (part, own) if schema.get(bound) == both.get(bound)]
        both[flag] = any(schema.get(flag) is True and bound in schema for schema in holding)


def _join_both(kind: Any, join: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Joins two values of that type; else the outer one wins."""
    return lambda part, own: join(part, own) if isinstance(part, kind) and isinstance(own, kind) else own


_all_of: Final = _join_both(dict, lambda part, own: {"allOf": [part, own]})


def _merge_properties(part: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    return {**part, **own, **{name: _all_of(part[name], own[name]) for name in part if name in own}}


def _unite(part: list[Any], own: list[Any]) -> list[Any]:
    return [*part, *(item for item in own if item not in part)]


def _multiple(part: Any, own: Any) -> Any:
    """The least common multiple."""
    if not all(isinstance(value, int | float) and value > 0 for value in (part, own)):
        return own
    first, second = Fraction(str(part)), Fraction(str(own))
    common = Fraction(
        math.lcm(first.numerator, second.numerator), math.gcd(first.denominator, second.denominator)
    )
    return int(common) if common.denominator == 1 else float(common)


_larger: Final = _join_both((int, float), max)
_smaller: Final = _join_both((int, float), min)
_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "properties": _join_both(dict, _merge_properties),
    "items": _all_of,
    "additionalProperties": _all_of,
    "enum": _join_both(list, lambda part, own: [item for item in own if item in part]),
    "type": lambda part, own: "integer" if (part, own) == ("integer", "number") else own,
    "multipleOf": _multiple,
    "uniqueItems": _larger,
    **dict.fromkeys(("required", "allOf", "x-kubernetes-validations"), _join_both(list, _unite)),
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), _larger),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), _smaller),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _larger),
}
"""The conjunction of two values, by keyword; for any other keyword the outer one wins."""

_APART: Final = frozenset({"anyOf", "oneOf", "not", "pattern"})
"""Keywords of which several apply without being expressible as one value."""

_EXCLUSIVE: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))

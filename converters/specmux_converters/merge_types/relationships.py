"""How the elements of a list or map are merged, by the ``x-kubernetes-*`` extensions of its schema.

An extension with a value of null is present, with an unknown value. Source: kube-openapi,
pkg/schemaconv/openapi.go, getMapElementRelationship and getListElementRelationship.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from specmux_converters.merge_types.go_format import plain, with_types

Report: TypeAlias = Callable[[str], None]

ATOMIC: Final = "atomic"
ASSOCIATIVE: Final = "associative"
SEPARABLE: Final = "separable"


class ListRelationship(NamedTuple):
    elements: str
    keys: tuple[str, ...] = ()
    """The fields that identify elements; empty if elements are identified by value."""


def map_relationship(schema: Mapping[str, Any], report: Report) -> str | None:
    """None if the schema does not specify it."""
    if "x-kubernetes-map-type" not in schema:
        return None
    match schema["x-kubernetes-map-type"]:
        case "atomic":
            return ATOMIC
        case "granular":
            return SEPARABLE
        case other:
            report(f"unknown map type {plain(other)}")
            return None


def list_relationship(schema: Mapping[str, Any], report: Report) -> ListRelationship:
    """``x-kubernetes-list-type``, or ``x-kubernetes-patch-strategy`` only if that is absent."""
    if "x-kubernetes-list-type" not in schema:
        return _by_patch_strategy(schema, report)
    match schema["x-kubernetes-list-type"]:
        case "atomic":
            pass
        case "set":
            return ListRelationship(ASSOCIATIVE)
        case "map":
            return ListRelationship(ASSOCIATIVE, _map_keys(schema, report))
        case other:
            report(f"unknown list type {plain(other)}")
    return ListRelationship(ATOMIC)


def _map_keys(schema: Mapping[str, Any], report: Report) -> tuple[str, ...]:
    if "x-kubernetes-list-map-keys" not in schema:
        report("missing map keys")
        return ()
    keys = schema["x-kubernetes-list-map-keys"]
    if not isinstance(keys, list):
        report(f"uninterpreted map keys: {with_types(keys)}")
        return ()
    return tuple(key for key in keys if isinstance(key, str))


def _by_patch_strategy(schema: Mapping[str, Any], report: Report) -> ListRelationship:
    if "x-kubernetes-patch-strategy" not in schema:
        return ListRelationship(ATOMIC)
    match schema["x-kubernetes-patch-strategy"]:
        case "merge" | "merge,retainKeys":
            return ListRelationship(ASSOCIATIVE, _merge_key(schema, report))
        case "retainKeys":
            pass
        case other:
            report(f"unknown patch strategy {plain(other)}")
    return ListRelationship(ATOMIC)


def _merge_key(schema: Mapping[str, Any], report: Report) -> tuple[str, ...]:
    if "x-kubernetes-patch-merge-key" not in schema:
        return ()
    key = schema["x-kubernetes-patch-merge-key"]
    if isinstance(key, str):
        return (key,)
    report(f"uninterpreted merge key: {with_types(key)}")
    return ()

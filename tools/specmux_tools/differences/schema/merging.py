"""Changes in how server-side apply and kubectl apply merge a list or an object.

Absent keywords have the defaults of kube-openapi's ``pkg/schemaconv/smd.go``: a list merges as its patch
strategy implies, otherwise it is atomic; an object merges by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding


@dataclass(frozen=True, slots=True)
class ListMerging:
    """The type of a list and, for a list of type map, its keys."""

    type: str
    keys: frozenset[str]


def list_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares two arrays."""
    before, after = _list(old), _list(new)
    if before.type != after.type:
        yield Finding("list-type-changed", "", old=before.type, new=after.type)
    elif before.keys != after.keys:
        yield Finding("list-map-keys-changed", "", old=sorted(before.keys), new=sorted(after.keys))
    yield from _strategy_changes(old, new)


def map_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares two objects."""
    before, after = _map_type(old), _map_type(new)
    if before != after:
        yield Finding("map-type-changed", "", old=before, new=after)
    yield from _strategy_changes(old, new)


def _list(schema: Mapping[str, Any]) -> ListMerging:
    said = schema.get("x-kubernetes-list-type")
    strategies, merge_key = _strategy(schema)
    if not isinstance(said, str):
        if "merge" not in strategies:
            return ListMerging("atomic", frozenset())
        said = "map" if merge_key else "set"
    if said != "map":
        return ListMerging(said, frozenset())
    keys = schema.get("x-kubernetes-list-map-keys")
    if not isinstance(keys, list):
        keys = [merge_key] if merge_key else []
    return ListMerging("map", frozenset(key for key in keys if isinstance(key, str)))


def _map_type(schema: Mapping[str, Any]) -> str:
    said = schema.get("x-kubernetes-map-type")
    return said if isinstance(said, str) else "granular"


def _strategy(schema: Mapping[str, Any]) -> tuple[frozenset[str], str]:
    strategy, key = schema.get("x-kubernetes-patch-strategy"), schema.get("x-kubernetes-patch-merge-key")
    names = strategy.split(",") if isinstance(strategy, str) else []
    return frozenset(name.strip() for name in names if name.strip()), key if isinstance(key, str) else ""


def _strategy_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    before, after = _strategy(old), _strategy(new)
    if before != after:
        yield Finding("patch-strategy-changed", "", old=_shown(before), new=_shown(after))


def _shown(strategy: tuple[frozenset[str], str]) -> str | None:
    names, key = strategy
    text = ",".join(sorted(names))
    return f"{text} by {key}" if key else text or None

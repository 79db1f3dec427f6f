"""Read the kinds that a server serves from its aggregated discovery (KEP-3352)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind

PATHS: Final = ("/api", "/apis")
HEADERS: Final = {
    "Accept": ", ".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        for version in ("v2", "v2beta1")
    )
}


@dataclass(frozen=True, slots=True)
class KindResource:
    """Where objects of a kind are found, and what may be done with them."""

    name: str
    """The plural, as used in URLs."""
    is_namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()


def resources_in(body: bytes) -> Mapping[GroupVersionKind, KindResource]:
    """Raises ValueError for what is no APIGroupDiscoveryList; of two resources of a kind the first counts."""
    value = json.loads(body)
    if not isinstance(value, dict) or value.get("kind") != "APIGroupDiscoveryList":
        raise ValueError("no APIGroupDiscoveryList: the server has no aggregated discovery")
    found: dict[GroupVersionKind, KindResource] = {}
    for group in _objects(value, "items"):
        name = _text(group.get("metadata") or {}, "name")
        for version in _objects(group, "versions"):
            for item in _objects(version, "resources"):
                kind = _text(item.get("responseKind") or {}, "kind")
                scope = _text(item, "scope") == "Namespaced"
                served = KindResource(
                    _text(item, "resource"), scope, _texts(item, "verbs"), _texts(item, "shortNames")
                )
                if kind and served.name:
                    found.setdefault(GroupVersionKind(name, _text(version, "version"), kind), served)
    return found


def _objects(value: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    found = value.get(key)
    return (each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict))


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...]:
    found = value.get(key)
    return tuple(each for each in (found if isinstance(found, list) else ()) if isinstance(each, str))

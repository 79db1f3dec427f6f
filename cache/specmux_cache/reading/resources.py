"""Read the kinds that a server serves from its aggregated discovery (KEP-3352).

The service reads the same lists with limits, complaints and subresources; ``tests/agreement`` asks both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind, is_name

PATHS: Final = ("/api", "/apis")
VERSIONS: Final = ("v2", "v2beta1")
"""Media types of the list, the preferred one first."""
LISTS: Final = {("APIGroupDiscoveryList", f"apidiscovery.k8s.io/{version}") for version in VERSIONS}
HEADERS: Final = {
    "Accept": ", ".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in VERSIONS
    )
}


@dataclass(frozen=True, slots=True)
class KindResource:
    """A kind as a server serves it: plural, scope, verbs."""

    name: str
    """The plural, as used in URLs."""
    is_namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()


def resources_in(body: bytes) -> Mapping[GroupVersionKind, KindResource]:
    """The kinds of each group-version. Skips malformed entries; of two resources of a kind, and of two lists
    of a group-version, the first counts. Raises ValueError for another document."""
    value = json.loads(body)
    if not isinstance(value, dict) or (value.get("kind"), value.get("apiVersion")) not in LISTS:
        raise ValueError("no APIGroupDiscoveryList: the server has no aggregated discovery")
    listed: dict[tuple[str, str], dict[GroupVersionKind, KindResource]] = {}
    for item in _objects(value, "items"):
        group = _text(item.get("metadata"), "name")
        for each in _objects(item, "versions"):
            version = _text(each, "version")
            if is_name(version) and (not group or is_name(group)):
                listed.setdefault((group, version), _kinds_in(each, group, version))
    return {kind: served for kinds in listed.values() for kind, served in kinds.items()}


def _kinds_in(listed: dict[str, Any], group: str, version: str) -> dict[GroupVersionKind, KindResource]:
    found: dict[GroupVersionKind, KindResource] = {}
    names: set[str] = set()
    for item in _objects(listed, "resources"):
        name, kind = _text(item, "resource"), _text(item.get("responseKind"), "kind")
        if not is_name(name) or name in names:
            continue
        names.add(name)
        if kind:
            is_namespaced = _text(item, "scope") == "Namespaced"
            served = KindResource(name, is_namespaced, _texts(item, "verbs"), _texts(item, "shortNames"))
            found.setdefault(GroupVersionKind(group, version, kind), served)
    return found


def _objects(value: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    found = value.get(key)
    return (each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict))


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...]:
    found = value.get(key)
    values = found if isinstance(found, list) else ()
    return tuple(dict.fromkeys(each for each in values if isinstance(each, str) and each))

"""Read the kinds that a server serves from its aggregated discovery (KEP-3352).

The service reads the same lists with limits, complaints and subresources; ``tests/agreement`` asks both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_values import mapping, objects, text, texts
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
    for item in objects(value.get("items")):
        group = text(mapping(item.get("metadata")).get("name"))
        for each in objects(item.get("versions")):
            version = text(each.get("version"))
            if is_name(version) and (not group or is_name(group)):
                listed.setdefault((group, version), _kinds_in(each, group, version))
    return {kind: served for kinds in listed.values() for kind, served in kinds.items()}


def _kinds_in(listed: dict[str, Any], group: str, version: str) -> dict[GroupVersionKind, KindResource]:
    found: dict[GroupVersionKind, KindResource] = {}
    names: set[str] = set()
    for item in objects(listed.get("resources")):
        name, kind = text(item.get("resource")), text(mapping(item.get("responseKind")).get("kind"))
        if not is_name(name) or name in names:
            continue
        names.add(name)
        if kind:
            is_namespaced = item.get("scope") == "Namespaced"
            verbs, short_names = (
                tuple(dict.fromkeys(filter(None, texts(item.get(key))))) for key in ("verbs", "shortNames")
            )
            served = KindResource(name, is_namespaced, verbs, short_names)
            found.setdefault(GroupVersionKind(group, version, kind), served)
    return found

"""The kinds of a document in a catalogue, and the distinction between custom resources and Go types.

A kind is a component whose ``x-kubernetes-group-version-kind`` has the document's own group-version. Kinds
that every group-version repeats for its requests (``DeleteOptions``, ``WatchEvent``) are not included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion

CRD_TITLE: Final = "Kubernetes CRD Swagger"
"""The title of documents by apiextensions-apiserver (pkg/controller/openapi/builder)."""

_KEY: Final = re.compile(r"api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+)")


class Kind(NamedTuple):
    """A kind and its component; "" is the core group, and the component of kinds without one."""

    group: str
    version: str
    kind: str
    component: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


LIST: Final = Kind("", "v1", "List", "")
"""A list of any objects, which clients write and no document describes."""


def group_and_version(key: GroupVersion) -> tuple[str, str] | None:
    """Of a discovery key; None for a key that is not a group-version."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    return ("", match["core"]) if match["core"] else (match["group"], match["version"])


def schemas_in(document: Document) -> Mapping[str, Any]:
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    return schemas if isinstance(schemas, dict) else {}


def kinds_in(document: Document, key: GroupVersion) -> tuple[Kind, ...]:
    """Sorted by name. Of two components of a kind, the first by name."""
    own = group_and_version(key)
    found: dict[str, Kind] = {}
    for component, schema in sorted(schemas_in(document).items()):
        for group, version, kind in _listed(schema):
            if (group, version) == own and not _is_of_requests(kind):
                found.setdefault(kind, Kind(group, version, kind, component))
    return tuple(found[kind] for kind in sorted(found))


def is_of_custom_resources(document: Document) -> bool:
    info = document.get("info")
    return isinstance(info, dict) and info.get("title") == CRD_TITLE


def kinds_with_status(document: Document) -> frozenset[tuple[str, str, str]]:
    """Group, version and kind of the objects with a ``/status``."""
    found: set[tuple[str, str, str]] = set()
    paths = document.get("paths")
    for path, item in paths.items() if isinstance(paths, dict) else ():
        if path.endswith("}/status") and isinstance(item, dict):
            for operation in item.values():
                if isinstance(operation, dict):
                    found.update(_listed(operation))
    return frozenset(found)


def components_with_status(document: Document) -> frozenset[str]:
    served = kinds_with_status(document)
    return frozenset(
        name for name, schema in schemas_in(document).items() if served.intersection(_listed(schema))
    )


def _listed(schema: Any) -> Iterator[tuple[str, str, str]]:
    """A component has a list, an operation a single value."""
    value = schema.get("x-kubernetes-group-version-kind") if isinstance(schema, dict) else None
    for entry in value if isinstance(value, list) else [value]:
        match entry:
            case {"group": str(group), "version": str(version), "kind": str(kind)}:
                yield group, version, kind


def _is_of_requests(kind: str) -> bool:
    return kind == "WatchEvent" or kind.endswith("Options")

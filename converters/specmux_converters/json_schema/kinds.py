"""The kinds of a document in a catalogue, and the distinction between custom resources and Go types.

A kind is a component whose ``x-kubernetes-group-version-kind`` has the document's own group-version. Kinds
that every group-version repeats for its requests (``DeleteOptions``, ``WatchEvent``) are not included.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, api_version, split
from specmux_converters.json_values import mapping
from specmux_converters.operations import kinds_named_by
from specmux_converters.references import schemas_of


class Kind(NamedTuple):
    """A kind and its component; "" is the core group, and the component of kinds without one."""

    group: str
    version: str
    kind: str
    component: str

    @property
    def api_version(self) -> str:
        return api_version(self.group, self.version)


LIST: Final = Kind("", "v1", "List", "")
"""A list of any objects, which clients write and no document describes."""


def kinds_in(document: Document, key: GroupVersion) -> tuple[Kind, ...]:
    """Sorted by name. Of two components of a kind, the first by name."""
    own = split(key)
    found: dict[str, Kind] = {}
    for component, schema in sorted(schemas_of(document).items()):
        for group, version, kind in kinds_named_by(schema):
            is_of_requests = kind == "WatchEvent" or kind.endswith("Options")
            if (group, version) == own and not is_of_requests:
                found.setdefault(kind, Kind(group, version, kind, component))
    return tuple(found[kind] for kind in sorted(found))


def kinds_with_status(document: Document) -> frozenset[tuple[str, str, str]]:
    """Group, version and kind of the objects with a ``/status``."""
    found: set[tuple[str, str, str]] = set()
    for path, item in mapping(document.get("paths")).items():
        if path.endswith("}/status") and isinstance(item, dict):
            for operation in item.values():
                if isinstance(operation, dict):
                    found.update(kinds_named_by(operation))
    return frozenset(found)


def components_with_status(document: Document) -> frozenset[str]:
    served = kinds_with_status(document)
    return frozenset(
        name for name, schema in schemas_of(document).items() if served.intersection(kinds_named_by(schema))
    )

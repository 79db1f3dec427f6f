"""Kinds by group-version-kind: the component of a document that describes each.

A component is a kind of its document if ``x-kubernetes-group-version-kind`` says so. Kinds that every
group-version repeats (``DeleteOptions``, ``WatchEvent``) belong to each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import kinds_named_by
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind


@dataclass(frozen=True, slots=True)
class KindSchema:
    """A kind of a document. ``schema``: the document's own object, read-only."""

    kind: GroupVersionKind
    group_version: GroupVersion
    """The key of the document."""
    component: str
    schema: Mapping[str, Any]
    document: Document


class DocumentSet:
    """Parsed documents by group-version, and their kinds. Treats the documents as read-only."""

    def __init__(self, documents: Mapping[GroupVersion, Document]) -> None:
        self.documents = documents
        self._kinds: dict[GroupVersionKind, KindSchema] = {}
        for group_version in sorted(documents):
            for found in kinds_of(documents[group_version], group_version):
                self._kinds.setdefault(found.kind, found)

    def __iter__(self) -> Iterator[KindSchema]:
        """Every kind once, sorted by group, version and kind."""
        return (self._kinds[kind] for kind in sorted(self._kinds))

    def __len__(self) -> int:
        return len(self._kinds)

    def find(self, kind: GroupVersionKind) -> KindSchema | None:
        """From the document of its group-version, else from any: Scale of autoscaling/v1 is in apps/v1."""
        return self._kinds.get(kind) or self._borrowed.get(kind)

    @cached_property
    def _borrowed(self) -> dict[GroupVersionKind, KindSchema]:
        """Kinds of group-versions other than the document's own."""
        found: dict[GroupVersionKind, KindSchema] = {}
        for group_version in sorted(self.documents):
            document = self.documents[group_version]
            for component, schema in schemas_of(document).items():
                for kind in group_version_kinds(schema) if isinstance(schema, dict) else ():
                    found.setdefault(kind, KindSchema(kind, group_version, component, schema, document))
        return found


def kinds_of(document: Document, group_version: GroupVersion) -> Iterator[KindSchema]:
    """The kinds of a document that belong to its own group-version, in the order of its components."""
    own = split(group_version)
    for component, schema in schemas_of(document).items():
        if not isinstance(schema, dict):
            continue
        for kind in group_version_kinds(schema):
            if (kind.group, kind.version) == own:
                yield KindSchema(kind, group_version, component, schema, document)


def group_version_kinds(schema: Mapping[str, Any]) -> tuple[GroupVersionKind, ...]:
    """The entries of ``x-kubernetes-group-version-kind``; malformed ones are skipped."""
    return tuple(GroupVersionKind(*each) for each in kinds_named_by(schema))

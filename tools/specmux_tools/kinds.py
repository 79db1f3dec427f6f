"""Kinds by group-version-kind: the component of a document that describes each.

A component is a kind of its document if ``x-kubernetes-group-version-kind`` says so. Kinds that every
group-version repeats (``DeleteOptions``, ``WatchEvent``) belong to each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any

from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import GROUP_VERSION_KIND, kinds_named_by
from specmux_converters.order import BUILT_IN_GROUPS
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

    def __init__(
        self,
        documents: Mapping[GroupVersion, Document],
        *,
        own: Mapping[GroupVersion, Document] | None = None,
    ) -> None:
        """``own``: documents of definitions at hand. A kind that they define is theirs in every version, as
        if the definitions were applied; other kinds of their group-versions stay those of ``documents``."""
        self.documents = documents
        self.own = own or {}
        self._kinds: dict[GroupVersionKind, KindSchema] = {}
        given = [each for key in sorted(documents) for each in kinds_of(documents[key], key)]
        if self.own:
            # An apiserver accepts a definition of one of its own kinds, and never serves it.
            self._kinds.update((each.kind, each) for each in given if _is_built_in(each))
        defined = [each for key in sorted(self.own) for each in kinds_of(self.own[key], key)]
        defined = [each for each in defined if each.kind not in self._kinds]
        # A definition has these, unlike ``DeleteOptions``, which every group-version has.
        of_one = (each.kind for each in defined if len(group_version_kinds(each.schema)) == 1)
        self._defined = {(kind.group, kind.kind) for kind in of_one}
        for found in (*defined, *(each for each in given if not self._is_defined(each.kind))):
            self._kinds.setdefault(found.kind, found)

    def __iter__(self) -> Iterator[KindSchema]:
        """Every kind once, sorted by group, version and kind."""
        return (self._kinds[kind] for kind in sorted(self._kinds))

    def __len__(self) -> int:
        return len(self._kinds)

    def is_built_in(self, kind: GroupVersionKind) -> bool:
        """Whether it is Kubernetes' own, which no definition changes."""
        found = self._kinds.get(kind)
        return found is not None and _is_built_in(found)

    def find(self, kind: GroupVersionKind) -> KindSchema | None:
        """In the document of its group-version, else in any: Scale of autoscaling/v1 is in apps/v1."""
        return self._kinds.get(kind) or self._borrowed.get(kind)

    def kinds_beside(self, others: Iterable[GroupVersionKind]) -> list[GroupVersionKind]:
        """The kinds here, then those of ``others`` that definitions at hand leave as they are."""
        here = [each.kind for each in self]
        return [*here, *(each for each in others if not self._is_defined(each))]

    @cached_property
    def _borrowed(self) -> dict[GroupVersionKind, KindSchema]:
        """Kinds of group-versions other than the document's own."""
        found: dict[GroupVersionKind, KindSchema] = {}
        for group_version, document in sorted(
            (*self.own.items(), *self.documents.items()), key=itemgetter(0)
        ):
            for component, schema in schemas_of(document).items():
                for kind in group_version_kinds(schema) if isinstance(schema, dict) else ():
                    if not self._is_defined(kind):
                        found.setdefault(kind, KindSchema(kind, group_version, component, schema, document))
        return found

    def _is_defined(self, kind: GroupVersionKind) -> bool:
        return (kind.group, kind.kind) in self._defined


def _is_built_in(found: KindSchema) -> bool:
    return found.kind.group in BUILT_IN_GROUPS and not is_of_custom_resources(found.document)


def kinds_of(document: Document, group_version: GroupVersion) -> Iterator[KindSchema]:
    """The kinds of a document that belong to its own group-version, in the order of its components."""
    own = split(group_version)
    for component, schema in schemas_of(document).items():
        if not isinstance(schema, dict) or GROUP_VERSION_KIND not in schema:
            continue
        for kind in group_version_kinds(schema):
            if (kind.group, kind.version) == own:
                yield KindSchema(kind, group_version, component, schema, document)


def group_version_kinds(schema: Mapping[str, Any]) -> tuple[GroupVersionKind, ...]:
    """The entries of ``x-kubernetes-group-version-kind``; malformed ones are skipped."""
    return tuple(GroupVersionKind(*each) for each in kinds_named_by(schema))

"""Build the OpenAPI v3 documents of group-versions from CustomResourceDefinitions.

A document is a join of the editions of its group-version. Manifests are treated as if applied in order to an
empty cluster: a later one of the same CRD replaces the earlier, and a CRD whose names are taken is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from specmux_converters.crd.manifest import CRD, Problem, Version, read_manifest, shown_name
from specmux_converters.crd.templates import BUNDLED, Templates
from specmux_converters.crd.version_documents import CRDMemo, Edition, make_edition
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.outlines import DocumentPart, Documents, Outline, parts_of

_FRAME: Final[Document] = {
    "openapi": "3.0.0",
    "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
}
"""An apiserver's own text."""


@dataclass(frozen=True, slots=True)
class CRDBuild:
    """The documents by group-version.

    They share the dicts of paths and components with each other and, through the memo, with other builds:
    treat them as read-only.
    """

    outlines: Mapping[GroupVersion, Outline] = field(repr=False)
    documents: Mapping[GroupVersion, Document] = field(repr=False, compare=False)
    fingerprints: Mapping[GroupVersion, str]
    """Fingerprints of the inputs of each document: equal ones mean an unchanged document."""
    problems: tuple[Problem, ...]

    def json(self, group_version: GroupVersion) -> bytes:
        """``canonical(documents[group_version])``, joined from parts that are encoded once."""
        return self.outlines[group_version].json()


def build(
    manifests: Iterable[Document],
    *,
    owns: Callable[[GroupVersion], bool] | None = None,
    memo: CRDMemo | None = None,
    limits: Limits = DEFAULT_LIMITS,
    templates: Templates = BUNDLED,
) -> CRDBuild:
    """The documents of all group-versions that ``owns`` accepts; other schemas are not examined.
    ``templates``: those of the target cluster.

    ``manifests`` are parsed under limits and must not be modified afterwards. Any fault of a manifest, except
    in its status, which is ignored, becomes one of ``problems`` instead of an exception.
    """
    problems: list[Problem] = []
    crds = _read_manifests(manifests, problems)
    wanted = [
        (crd, version)
        for crd in crds
        for version in crd.versions
        if owns is None or owns(crd.group_version(version))
    ]
    memo = CRDMemo() if memo is None else memo
    memo.keep({(crd.name, version.name) for crd in crds for version in crd.versions})
    groups = _group(wanted, memo, limits, problems, templates)
    outlines = {key: group.outline() for key, group in groups.items()}
    return CRDBuild(
        outlines=MappingProxyType(outlines),
        documents=Documents(outlines),
        fingerprints=MappingProxyType({key: group.fingerprint() for key, group in groups.items()}),
        problems=tuple(problems),
    )


def _read_manifests(manifests: Iterable[Document], problems: list[Problem]) -> list[CRD]:
    """In the order in which their names first occur."""
    crds: dict[str, CRD] = {}
    for manifest in manifests:
        try:
            crd = read_manifest(manifest, problems)
        except ConverterError as fault:
            problems.append(Problem(shown_name(manifest), fault.pointer, "manifest", fault.reason))
            continue
        if crds.get(crd.name, crd) != crd:
            problems.append(
                Problem(crd.name, "", "manifest", "overridden by a later definition of the same CRD")
            )
        crds[crd.name] = crd
    return list(crds.values())


def _group(
    wanted: Iterable[tuple[CRD, Version]],
    memo: CRDMemo,
    limits: Limits,
    problems: list[Problem],
    templates: Templates,
) -> dict[GroupVersion, _Group]:
    groups: dict[GroupVersion, _Group] = {}
    left = limits.max_expanded_bytes
    for crd, version in wanted:
        group = groups.get(crd.group_version(version)) or _Group(
            templates, owners=dict.fromkeys(_common_parts(templates), "")
        )
        try:
            if left <= 0:
                raise LimitExceeded("the documents would be too large")
            edition = make_edition(crd, version, memo, templates)
            group.add(crd, edition)
        except ConverterError as fault:
            problems.append(Problem(crd.name, fault.pointer, "version", fault.reason))
            continue
        groups[crd.group_version(version)] = group
        problems.extend(edition.problems)
        left -= edition.cost
    return dict(sorted(groups.items()))


@dataclass(slots=True)
class _Group:
    """A group-version being built; ``owners``: the CRDs of its paths and components, "" for shared ones."""

    templates: Templates
    owners: dict[str, str]
    editions: list[Edition] = field(default_factory=list)

    def add(self, crd: CRD, edition: Edition) -> None:
        """Raises InvalidDocument if another CRD has a path or component of the same name."""
        for name in (*edition.schemas, *edition.paths):
            if name in self.owners:
                owner = self.owners[name] or "Kubernetes itself"
                raise InvalidDocument(f"{name} is taken by {owner}", pointer="/spec/names")
        self.editions.append(edition)
        self.owners.update(dict.fromkeys((*edition.schemas, *edition.paths), crd.name))

    def outline(self) -> Outline:
        paths: dict[str, DocumentPart] = {}
        schemas = dict(_common_parts(self.templates))
        for edition in self.editions:
            paths.update(edition.paths)
            schemas.update(edition.schemas)
            if edition.has_scale:
                schemas.update(_scale_parts(self.templates))
        return Outline(_FRAME, dict(sorted(paths.items())), {"schemas": dict(sorted(schemas.items()))})

    def fingerprint(self) -> str:
        return sha256(b"".join(sorted(edition.digest for edition in self.editions))).hexdigest()


@lru_cache(maxsize=4)
def _common_parts(templates: Templates) -> Mapping[str, DocumentPart]:
    return parts_of(templates.schemas)


@lru_cache(maxsize=4)
def _scale_parts(templates: Templates) -> Mapping[str, DocumentPart]:
    return parts_of(templates.scale)

"""Documents built in a worker process from a backend's bytes. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from specmux_aggregator.model.observation import Offer
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import Resources

Owned = frozenset[GroupVersion] | None
"""The group-versions that a backend may publish; None: all."""


@dataclass(frozen=True, slots=True)
class BuiltDocument:
    """A document built here. ``gzip`` is its canonical JSON; None if the caller already has that hash."""

    group_version: GroupVersion
    offer: Offer
    gzip: bytes | None
    resources: Resources | None = None
    """The resources in the document, if it was parsed while being built; None: not extracted."""


@dataclass(frozen=True, slots=True)
class FileBuilt:
    """The result of one file of a directory. ``note``: why it yields nothing, or a warning."""

    documents: tuple[BuiltDocument, ...]
    note: str | None = None
    holds_manifests: bool = False
    """Whether it contains CustomResourceDefinitions, which are built together."""

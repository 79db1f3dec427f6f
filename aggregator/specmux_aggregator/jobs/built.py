"""Documents made from a backend's bytes, on their way from a worker process. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from specmux_aggregator.model.observation import Offer
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources

Owned = frozenset[GroupVersion] | None
"""The group-versions a backend may publish; None: all."""


@dataclass(frozen=True, slots=True)
class BuiltDocument:
    """A document made here. ``gzip`` is its canonical JSON, or None where the caller already holds that
    hash."""

    group_version: GroupVersion
    offer: Offer
    gzip: bytes | None
    resources: Resources | None = None
    """Those that the document tells of, where it was at hand as it was built; None: not read."""


@dataclass(frozen=True, slots=True)
class FileBuilt:
    """What one file of a directory gave. ``note``: why it gave nothing, or what is odd about it."""

    documents: tuple[BuiltDocument, ...]
    note: str | None = None
    holds_manifests: bool = False
    """It holds CustomResourceDefinitions, which are built all together."""

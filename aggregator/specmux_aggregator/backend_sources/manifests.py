"""Manifests of definitions, wherever they come from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Protocol

from specmux_aggregator.model.failure import Failure
from specmux_aggregator.workers.built import ManifestFile, ManifestObject
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # imported where there are manifests
    from specmux_converters.crd import Templates


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a manifest cannot be read."""

    reason: str


class Manifests(Protocol):
    """A collection of named manifests."""

    async def scan(self) -> Mapping[str, Hashable] | Failure:
        """All manifests, in order of precedence. A value changes whenever its manifest does."""
        ...

    async def templates(self) -> Templates:
        """The templates shared by the documents of the cluster."""
        ...

    def manifest(self, name: str) -> ManifestFile | ManifestObject | Unreadable:
        """A manifest named by ``scan``, with its bytes. Blocks."""
        ...

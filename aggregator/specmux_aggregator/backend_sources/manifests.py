"""Manifests of definitions, wherever they come from; imported where there are any."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

from specmux_aggregator.backend_sources.files import DocumentFiles, Fingerprint
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.workers.built import ManifestFile, ManifestObject
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.lazy.dataclasses import dataclass


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


class FolderManifests:
    """All files, or those that ``among`` returns."""

    def __init__(
        self, files: DocumentFiles, *, among: Callable[[], Mapping[str, Fingerprint]] | None = None
    ) -> None:
        self._files = files
        self._among = among

    async def scan(self) -> Mapping[str, Fingerprint] | Failure:
        return await self._files.scan() if self._among is None else self._among()

    async def templates(self) -> Templates:
        """The newest known ones: files belong to no cluster."""
        return BUNDLED

    def manifest(self, name: str) -> ManifestFile | Unreadable:
        """The file as one that may contain manifests. Blocks."""
        try:
            return ManifestFile(name, self._files.read(name))
        except OSError as error:
            return Unreadable(error.strerror or type(error).__name__)

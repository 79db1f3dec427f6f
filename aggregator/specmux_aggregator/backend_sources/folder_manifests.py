"""The manifests among files, for who builds documents of them."""

from __future__ import annotations

from collections.abc import Mapping

from specmux_aggregator.backend_sources.directory import DirectoryOrigin
from specmux_aggregator.backend_sources.files import DocumentFiles, Fingerprint
from specmux_aggregator.backend_sources.manifests import Unreadable
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.workers.built import ManifestFile
from specmux_converters.crd import BUNDLED, Templates


class FolderManifests:
    """All files, or those in which ``among`` found manifests."""

    def __init__(self, files: DocumentFiles, *, among: DirectoryOrigin | None = None) -> None:
        self._files = files
        self._among = among

    async def scan(self) -> Mapping[str, Fingerprint] | Failure:
        return await self._files.scan() if self._among is None else self._among.manifests

    async def templates(self) -> Templates:
        """The newest known ones: files belong to no cluster."""
        return BUNDLED

    def manifest(self, name: str) -> ManifestFile | Unreadable:
        """The file as one that may contain manifests. Blocks."""
        try:
            return ManifestFile(name, self._files.read(name))
        except OSError as error:
            return Unreadable(error.strerror or type(error).__name__)

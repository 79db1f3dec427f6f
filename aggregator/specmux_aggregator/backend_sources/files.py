"""The document files below a directory: their names, fingerprints, and bytes within a limit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from specmux_aggregator.backend_sources.crds import Unreadable
from specmux_aggregator.folders import read_at_most, walked
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.workers.crds import ManifestFile
from specmux_aggregator.workers.file_names import is_document_name
from specmux_converters.crd import BUNDLED, Templates

Fingerprint = tuple[int, int, int]
"""Size, modification time in nanoseconds, inode: changes when a file is written or replaced."""


class Folder:
    """A directory tree, read within limits."""

    def __init__(self, path: Path, *, max_files: int, max_bytes: int) -> None:
        self._path = path
        self._max_files = max_files
        self._max_bytes = max_bytes

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        """Every document file by its path below the directory, sorted; or why they cannot be listed."""
        return await asyncio.to_thread(_scan, self._path, self._max_files)

    async def templates(self) -> Templates:
        """The newest known ones: files belong to no cluster."""
        return BUNDLED

    def manifest(self, name: str) -> ManifestFile | Unreadable:
        """The file as one that may contain manifests. Blocks."""
        try:
            data = self.read(name)
        except OSError as error:
            return Unreadable(error.strerror or type(error).__name__)
        return ManifestFile(name, data)

    def read(self, name: str) -> bytes:
        """The file's bytes; of a file beyond the limit, one byte more than the limit. Raises OSError;
        blocks."""
        return read_at_most(self._path / name, self._max_bytes)


def _scan(directory: Path, max_files: int) -> dict[str, Fingerprint] | Failure:
    found: dict[str, Fingerprint] = {}
    try:
        for path in walked(directory, is_document_name):
            if len(found) >= max_files:
                return Failure(Cause.TOO_LARGE, f"more than {max_files} files")
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # removed since its directory was listed
            name = path.relative_to(directory).as_posix()
            found[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    except OSError as error:
        return Failure(Cause.UNREADABLE, error.strerror or type(error).__name__)
    return dict(sorted(found.items()))

"""The document files below a directory: which there are, whether they changed, and their bytes within a
bound."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from specmux_aggregator.folders import walked
from specmux_aggregator.jobs.crds import ManifestFile
from specmux_aggregator.jobs.file_names import is_document_name
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.origins.crds import Unreadable
from specmux_converters.crd import BUNDLED, Templates

Fingerprint = tuple[int, int, int]
"""Size, modification time in nanoseconds, inode: differs when a file was written or replaced."""


class Folder:
    """One directory tree, looked into within bounds."""

    def __init__(self, path: Path, *, max_files: int, max_bytes: int) -> None:
        self._path = path
        self._max_files = max_files
        self._max_bytes = max_bytes

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        """Every document file by its path below the directory, in the order of the paths; or why it cannot be
        told."""
        return await asyncio.to_thread(_scan, self._path, self._max_files)

    async def templates(self) -> Templates:
        """The newest that are known: files are of no cluster."""
        return BUNDLED

    def manifest(self, name: str) -> ManifestFile | Unreadable:
        """The file, as one that may hold manifests. Blocks."""
        try:
            data = self.read(name)
        except OSError as error:
            return Unreadable(error.strerror or type(error).__name__)
        return ManifestFile(name, hashlib.sha256(data).digest(), data)

    def read(self, name: str) -> bytes:
        """The file's bytes, and one more than the bound of a file that is larger. Raises OSError; blocks."""
        with (self._path / name).open("rb") as file:
            return file.read(self._max_bytes + 1)


def _scan(directory: Path, max_files: int) -> dict[str, Fingerprint] | Failure:
    found: dict[str, Fingerprint] = {}
    try:
        for path in walked(directory, is_document_name):
            if len(found) >= max_files:
                return Failure(Cause.TOO_LARGE, f"more than {max_files} files")
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # removed since its directory was read
            name = path.relative_to(directory).as_posix()
            found[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    except OSError as error:
        return Failure(Cause.UNREADABLE, error.strerror or type(error).__name__)
    return dict(sorted(found.items()))

"""The document files below a directory: their names, fingerprints, and bytes within a limit.

A scan asks for the status of every folder and file, and lists only folders whose modification time has
changed: 10,000 of each are looked at every few seconds. The time of a folder has the kernel's granularity, so
one that changed a moment ago is listed again; every ALL_LISTED scans all are, for file systems that do not
keep it.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from specmux_aggregator.folders import is_document_name, is_hidden, read_at_most
from specmux_aggregator.model.failure import Cause, Failure

Fingerprint = tuple[int, int, int]
"""Size, modification time in nanoseconds, inode: changes when a file is written or replaced."""


ALL_LISTED: Final = 30
"""Scans after which every folder is listed again."""

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after which a folder's modification time shows every later change."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """One folder: names of possible document files, and of the folders to be searched."""

    modified: tuple[int, int]
    """Modification time and inode."""
    is_settled: bool
    files: tuple[str, ...]
    folders: tuple[str, ...]


class DocumentFiles(Protocol):
    """Files by name, wherever they lie: the methods of ``Folder``."""

    async def scan(self) -> dict[str, Fingerprint] | Failure: ...

    def read(self, name: str) -> bytes: ...


class Folder:
    """A directory tree, read within limits."""

    def __init__(self, path: Path, *, max_files: int, max_bytes: int) -> None:
        self._path = path
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._listings: dict[str, _Listing] = {}
        self._scans = 0

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        """Every document file by its path below the directory, sorted; or why they cannot be listed."""
        return await asyncio.to_thread(self._scan)

    def read(self, name: str) -> bytes:
        """The file's bytes; of a file beyond the limit, one byte more than the limit. Raises OSError;
        blocks."""
        return read_at_most(self._path / name, self._max_bytes)

    def _scan(self) -> dict[str, Fingerprint] | Failure:
        known = self._listings if self._scans % ALL_LISTED else {}
        self._scans += 1
        listings: dict[str, _Listing] = {}
        found: dict[str, Fingerprint] = {}
        root, pending = f"{self._path}/", [""]
        try:
            while pending:
                at = pending.pop()
                try:
                    listing = listings[at] = _listing(root + at, known.get(at))
                except FileNotFoundError:
                    if not at:
                        raise
                    continue  # removed since its parent was listed
                pending += [f"{at}{name}/" for name in listing.folders]
                for name in listing.files:
                    try:
                        status = os.stat(root + at + name)  # noqa: PTH116  # a Path costs more than the call
                    except FileNotFoundError:
                        continue
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    if len(found) >= self._max_files:
                        return Failure(Cause.TOO_LARGE, f"more than {self._max_files} files")
                    found[at + name] = (status.st_size, status.st_mtime_ns, status.st_ino)
        except OSError as error:
            return Failure(Cause.UNREADABLE, error.strerror or type(error).__name__)
        self._listings = listings
        return dict(sorted(found.items()))


def _listing(folder: str, known: _Listing | None) -> _Listing:
    """The listing of a folder; ``known`` if it still holds. Raises OSError."""
    status = os.stat(folder)  # noqa: PTH116
    modified = (status.st_mtime_ns, status.st_ino)
    if known is not None and known.is_settled and known.modified == modified:
        return known
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not is_hidden(entry.name):
                    folders.append(entry.name)
            elif is_document_name(entry.name):
                files.append(entry.name)
    is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED
    return _Listing(modified, is_settled, tuple(files), tuple(folders))

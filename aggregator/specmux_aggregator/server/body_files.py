"""Memory files of large bodies that are requested repeatedly; the kernel sends their pages (``sendfile``).

Invariant: a descriptor leaves this module only while it still refers to the file made for the body. Code that
closes a descriptor twice hands its number to the next file that is opened; a hash URL would then answer with
another document for a year. So each file has a length that no other file has, and the length is compared
before each use: a quarter of a microsecond, a third of fstat. A descriptor that was lost is left to its new
owner, and the body is sent from memory.
"""

from __future__ import annotations

import fcntl
import itertools
import logging
import os
import socket
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.server.stats import RequestStats

logger = logging.getLogger(__name__)

FILED_MIN: Final = 256 * 1024
"""The smallest body that gets a file. Below, copying is cheaper: 126 KB take as long with a file, 79 KB a
fifth less without; 406 KB a quarter less with one."""

FILES_MAX: Final = 16 * 1024 * 1024
"""Bytes of all memory files together."""

FILES_COUNT_MAX: Final = 128
"""Descriptors of all memory files together."""

SIGHTS: Final = 64

LENGTHS: Final = range(1 << 45, 1 << 62, 1 << 25)
"""Lengths reserved for these files: from 32 TiB on, further apart than the largest body. The part beyond the
body is a hole, which takes no memory and is never sent."""

HAS_MEMORY_FILES: Final = all(
    hasattr(owner, name) for owner, name in ((os, "memfd_create"), (os, "sendfile"), (socket, "MSG_MORE"))
)


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A body and the memory file that holds it. The reference keeps the id of the body unique."""

    body: bytes
    number: int
    length: int

    def is_whole(self) -> bool:
        """Whether the descriptor still refers to this file."""
        try:
            return os.lseek(self.number, 0, os.SEEK_END) == self.length
        except OSError:  # closed, or no file at all
            return False


class BodyFiles:
    """Memory files of large bodies that are requested repeatedly; evicts the least recently used."""

    __slots__ = ("_files", "_lengths", "_seen", "_size", "_stats")

    def __init__(self, stats: RequestStats) -> None:
        self._files: dict[int, MemoryFile] = {}
        self._size = 0
        self._seen = [0] * SIGHTS
        self._lengths = itertools.chain(LENGTHS)
        self._stats = stats

    def file_of(self, body: bytes) -> int | None:
        """A descriptor of a file that holds ``body``; None at its first request, for a small body, and on
        systems without memory files."""
        key = id(body)
        known = self._files.pop(key, None)
        if known is not None and known.is_whole():
            self._files[key] = known
            return known.number
        if known is not None:
            self._lose(known)
        place = key // 16 % SIGHTS  # objects are aligned
        if self._seen[place] != key or not HAS_MEMORY_FILES or not FILED_MIN <= len(body) <= FILES_MAX:
            self._seen[place] = key
            return None
        return self._keep(key, body)

    def find(self, body: bytes) -> int | None:
        """The existing file of ``body``, for an answer that is already being sent."""
        known = self._files.get(id(body))
        if known is None or known.is_whole():
            return None if known is None else known.number
        self._lose(self._files.pop(id(body)))
        return None

    def clear(self) -> None:
        """Close every file. A file that is requested later is made anew."""
        while self._files:
            self._close(self._files.popitem()[1])

    def _keep(self, key: int, body: bytes) -> int | None:
        while self._size + len(body) > FILES_MAX or len(self._files) >= FILES_COUNT_MAX:
            self._close(self._files.pop(next(iter(self._files))))
        length = next(self._lengths) + len(body)
        try:
            number = _fill_file(body, length)
        except OSError:  # out of descriptors or memory: the body is copied instead
            return None
        self._files[key] = MemoryFile(body, number, length)
        self._size += len(body)
        return number

    def _close(self, file: MemoryFile) -> None:
        if file.is_whole():
            self._size -= len(file.body)
            os.close(file.number)
        else:
            self._lose(file)

    def _lose(self, file: MemoryFile) -> None:
        self._size -= len(file.body)
        if not self._stats.body_files_lost:
            logger.error(
                "descriptor %d is no longer the memory file that was opened as it: something closed it."
                " Its body is sent from memory; see specmux_body_files_lost_total",
                file.number,
            )
        self._stats.body_files_lost += 1


def _fill_file(body: bytes, length: int) -> int:
    """A memory file of that length which begins with ``body`` and is sealed. Raises OSError."""
    number = os.memfd_create("specmux-body", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(body)
        while view:
            view = view[os.write(number, view) :]
        os.ftruncate(number, length)
        fcntl.fcntl(number, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except OSError:
        os.close(number)
        raise
    return number

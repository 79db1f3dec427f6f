"""Content-addressed body files: ``bodies/<first digit>/<sha256>``, written beside and renamed into place.

Nothing is fsynced: a reader verifies every body, so a power cut costs an entry, never a wrong answer.
Invariant: a file here has been written whole, or the machine lost power.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

from .rows import Digest, Encoding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIGEST = re.compile(r"[0-9a-f]{64}")
BLOCK = 4096
"""Bytes that file systems allocate at a time; what a file takes is its size rounded up to this."""
LEVEL = 3
"""zstd. On the API documents of Kubernetes 1.35 smaller than zlib -6 and seven times faster to read."""
SMALL = 128
"""Bytes; compressing less gains no block."""


@dataclass(frozen=True, slots=True)
class BodyFile:
    """A file as it lies on disk; ``digest`` is None for a temporary one."""

    path: Path
    digest: Digest | None
    allocated: int
    modified_at: float


class Bodies:
    """The files below one directory. Raises OSError; knows nothing of the index."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "bodies"
        self.temporary = directory / "tmp"

    def path(self, digest: Digest) -> Path:
        if not is_digest(digest):
            raise ValueError("not a digest")
        return self.directory / digest[0] / digest

    def read(self, digest: Digest, *, max_bytes: int) -> bytes:
        """The file as stored. Raises FileNotFoundError, or ValueError above max_bytes."""
        descriptor = os.open(self.path(digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            if size > max_bytes:
                raise ValueError("the body file is larger than any that was stored")
            return file.read(size)

    def write(self, data: bytes) -> Path:
        """A temporary file with these bytes, for ``publish``. Leaves none behind when it raises."""
        path = self.temporary / secrets.token_hex(16)
        try:
            descriptor = _create(path)
        except FileNotFoundError:
            self.temporary.mkdir(mode=0o700, exist_ok=True)
            descriptor = _create(path)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def publish(self, temporary: Path, digest: Digest) -> None:
        target = self.path(digest)
        try:
            os.replace(temporary, target)
        except FileNotFoundError:
            self.directory.mkdir(mode=0o700, exist_ok=True)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(temporary, target)

    def has(self, digest: Digest) -> bool:
        return self.path(digest).is_file()

    def remove(self, digest: Digest) -> None:
        self.path(digest).unlink(missing_ok=True)

    def files(self) -> Iterator[BodyFile]:
        """All that lies here, in no order; what vanishes meanwhile is left out."""
        for directory in self._directories():
            for entry in _scan(directory):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                digest = Digest(entry.name) if is_digest(entry.name) else None
                yield BodyFile(directory / entry.name, digest, status.st_blocks * 512, status.st_mtime)

    def overhead(self) -> int:
        """Allocated bytes of the directories and of temporary files."""
        directories = sum(_allocated(path) for path in (self.directory, *self._directories()))
        return directories + sum(_allocated(self.temporary / entry.name) for entry in _scan(self.temporary))

    def remove_empty_directories(self) -> int:
        removed = 0
        for directory in self._directories():
            try:
                directory.rmdir()
            except OSError:
                continue
            removed += 1
        return removed

    def _directories(self) -> list[Path]:
        return [self.temporary, *(self.directory / entry.name for entry in _scan(self.directory))]


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


def is_digest(text: str) -> bool:
    return DIGEST.fullmatch(text) is not None


def pack(body: bytes, *, compress: bool) -> tuple[Encoding, bytes]:
    """The bytes to store; as they are where compressing does not pay."""
    if compress and len(body) >= SMALL:
        packed = zstandard.compress(body, LEVEL)
        if len(packed) < len(body):
            return "zstd", packed
    return "identity", body


def unpack(data: bytes, encoding: Encoding, *, size: int, digest: Digest) -> bytes:
    """The body. Raises ValueError unless it has this size and digest; decompresses no more than ``size``."""
    body = data
    if encoding == "zstd":
        try:
            if zstandard.frame_content_size(data) != size:
                raise ValueError("the body is not of the size that was stored")
            body = zstandard.decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError("the body does not decompress") from error
    if len(body) != size or digest_of(body) != digest:
        raise ValueError("the body is not what was stored")
    return body


def allocated(size: int) -> int:
    """Bytes that a file of this size takes on disk."""
    return -(-size // BLOCK) * BLOCK


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _scan(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _allocated(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0

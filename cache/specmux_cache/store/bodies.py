"""Content-addressed body files: ``bodies/<first digit>/<sha256>``, written to a temporary file and renamed.

Nothing is fsynced: a reader verifies every body, so a power failure costs an entry, never a wrong answer.
Invariant: a file here is complete, unless the machine lost power.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import zstandard

from specmux_cache.store.rows import Digest, Encoding, is_digest
from specmux_converters.lazy.dataclasses import dataclass

TEMPORARY: Final = "tmp"
BLOCK: Final = 4096
"""Allocation unit of file systems; sizes of files are rounded up to it."""
LEVEL: Final = 3
"""zstd level: on Kubernetes' API documents smaller than zlib -6, and decompressed in a seventh of the
time."""
SMALL: Final = 128
"""Bytes below which compression saves no block."""
CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class BodyFile:
    """A file on disk; ``digest`` is None for a temporary or foreign one."""

    path: str
    digest: Digest | None
    allocated: int
    modified_at: float


class Bodies:
    """The files below one directory. Raises OSError; independent of the index."""

    def __init__(self, directory: Path) -> None:
        self._root = f"{directory}/bodies"
        self._temporary = f"{directory}/{TEMPORARY}"
        self._shelves = tuple(f"{self._root}/{digit}" for digit in "0123456789abcdef")

    def read(self, digest: Digest, *, max_bytes: int) -> bytes:
        """The stored bytes. Raises FileNotFoundError, or ValueError above max_bytes."""
        descriptor = open_file(self.path(digest), os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if size > max_bytes:
                raise ValueError("the body file is larger than what was stored")
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def write(self, data: bytes) -> Path:
        """A temporary file with these bytes, for ``publish``. Leaves no file behind when it raises."""
        path = Path(self._temporary, os.urandom(16).hex())
        try:
            descriptor = os.open(path, CREATE_FLAGS, 0o600)
        except FileNotFoundError:
            _make(self._temporary)
            descriptor = os.open(path, CREATE_FLAGS, 0o600)
        try:
            _write_all(descriptor, data)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return path

    def publish(self, temporary: Path, digest: Digest) -> None:
        target = self.path(digest)
        try:
            temporary.replace(target)
        except FileNotFoundError:
            _make(self._root)
            _make(str(target.parent))
            temporary.replace(target)
        except IsADirectoryError:
            _remove(target)
            temporary.replace(target)

    def remove(self, digest: Digest) -> None:
        _remove(self.path(digest))

    def path(self, digest: Digest) -> Path:
        if not is_digest(digest):
            raise ValueError("not a digest")
        return Path(self._root, digest[0], digest)

    def files(self) -> Iterator[BodyFile]:
        """All files, unordered; those that vanish meanwhile are left out."""
        for directory in (self._temporary, *self._shelves):
            for entry in _scan(directory):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                digest = (
                    Digest(entry.name) if is_digest(entry.name) and directory != self._temporary else None
                )
                yield BodyFile(entry.path, digest, status.st_blocks * 512, status.st_mtime)

    def remove_file(self, file: BodyFile) -> None:
        with contextlib.suppress(OSError):
            _remove(Path(file.path))

    def overhead(self) -> int:
        """Allocated bytes of directories and temporary files."""
        own = sum(map(allocated_at, (self._root, self._temporary, *self._shelves)))
        return own + sum(allocated_at(entry.path) for entry in _scan(self._temporary))

    def remove_empty_directories(self) -> None:
        """Must not run beside ``publish``, which may have just created one. ``tmp`` stays, since writers need
        it at any time."""
        for directory in (*self._shelves, self._root):
            with contextlib.suppress(OSError):
                Path(directory).rmdir()


def open_file(path: str | Path, flags: int) -> int:
    """A descriptor of a regular file. Raises OSError for others: a FIFO would block."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


def pack(body: bytes, *, compress: bool) -> tuple[Encoding, bytes]:
    """The bytes to store, never longer than the body."""
    if compress and len(body) >= SMALL:
        packed = zstandard.compress(body, LEVEL)
        if len(packed) < len(body):
            return "zstd", packed
    return "identity", body


def unpack(data: bytes, encoding: Encoding, *, size: int, digest: Digest, packed: str | None = None) -> bytes:
    """The body. Raises ValueError unless it has this size and digest; decompresses at most ``size`` bytes.

    ``packed``: the digest of the stored bytes, recorded by their writer. If it matches, the body's own digest
    need not be computed, which takes twice as long as decompression.
    """
    body = data
    if encoding == "zstd":
        try:
            if zstandard.frame_content_size(data) != size:
                raise ValueError("the body is not of the size that was stored")
            body = zstandard.decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError("the body does not decompress") from error
    is_proven = encoding == "zstd" and packed is not None and digest_of(data) == packed
    if len(body) != size or not (is_proven or digest_of(body) == digest):
        raise ValueError("the body is not what was stored")
    return body


def allocated_bytes(size: int) -> int:
    """Bytes that a file of this size occupies on disk."""
    return -(-size // BLOCK) * BLOCK


def allocated_at(path: str) -> int:
    """Bytes that this file or directory occupies; 0 if absent. Takes a string, since Path costs more than the
    call."""
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _remove(path: Path) -> None:
    """Remove whatever took the place of a file."""
    try:
        path.unlink(missing_ok=True)
    except (IsADirectoryError, PermissionError):  # the second on macOS
        if not path.is_dir():
            raise
        import shutil  # rarely needed

        shutil.rmtree(path, ignore_errors=True)


def _make(directory: str) -> None:
    with contextlib.suppress(FileExistsError):
        Path(directory).mkdir(0o700)


def _scan(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []

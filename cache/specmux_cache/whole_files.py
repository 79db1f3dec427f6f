"""Files that are read and replaced as a whole: small ones of configuration and credentials, read up to a
bound, and results, of which a reader sees the old bytes or the new."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

FILE_MAX: Final = 1024 * 1024
"""Bytes of the largest file of settings, tokens or certificates."""


class UnreadableFile(Exception):
    """The message says why, without the path and the content."""


def read_small(path: Path, *, max_bytes: int = FILE_MAX) -> bytes:
    """The file's bytes. Raises UnreadableFile, also for anything but a regular file, since a pipe would
    block."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            kind = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(kind):
                raise OSError(errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL, "not a regular file")
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise UnreadableFile(error.strerror or "cannot be read") from error
    if len(data) > max_bytes:
        raise UnreadableFile(f"larger than {max_bytes} bytes")
    return data


@contextlib.contextmanager
def open_replacement(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file, which takes the place of ``path`` once it is written; a failure leaves nothing behind.
    Raises OSError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        beside.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()

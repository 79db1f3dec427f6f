"""Read files of bounded size that contain configuration or credentials."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

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

"""Files of a bounded size that hold configuration or credentials, read whole."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

FILE_MAX: Final = 1024 * 1024
"""Bytes of a file of settings, tokens or certificates."""


class UnreadableFile(Exception):
    """The message says why, and neither the path nor anything that the file holds."""


def read_small(path: Path, *, max_bytes: int = FILE_MAX) -> bytes:
    """The file's bytes. Raises UnreadableFile, also for what is no regular file: a pipe would be waited
    for."""
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

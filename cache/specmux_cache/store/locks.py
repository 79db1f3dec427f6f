"""Advisory locks between processes: one locked file each, released by the kernel when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

POLL: Final = 0.005  # seconds


@contextmanager
def hold_lock(path: Path, *, timeout: float) -> Iterator[bool]:
    """Whether the lock was acquired within ``timeout`` seconds; 0 tries once. Raises OSError.

    Also excludes other holders in the same process: the lock belongs to the open file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        yield _acquire_lock(descriptor, time.monotonic() + timeout)
    finally:
        os.close(descriptor)


def _acquire_lock(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        else:
            return True

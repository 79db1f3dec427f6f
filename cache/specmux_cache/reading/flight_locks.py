"""One request per key at a time among processes that share a directory."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from specmux_cache.reading.client_runtime import Calls

STRIPES: Final = 64
"""A fixed number of lock files; two keys that share one at worst wait for each other."""
POLL: Final = 0.02
"""Seconds between attempts to take a lock."""


class FlightLocks:
    """Advisory locks among processes. They only save work: without a lock, the request is sent anyway."""

    def __init__(self, directory: Path | None, *, timeout: float, calls: Calls) -> None:
        """``directory`` None disables locks; ``timeout`` in seconds."""
        self._directory = directory
        self._timeout = timeout
        self._calls = calls

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[bool]:
        """Wait for the key's lock. False: another process still has it, or there are no locks."""
        if self._directory is None:
            yield False
            return
        stripe = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:2], "big") % STRIPES
        path = self._directory / f"{stripe:02}"
        descriptor: int | None = None
        try:
            with contextlib.suppress(OSError):
                descriptor = await self._calls.run(_open_file, path)
            yield descriptor is not None and await self._wait_for_lock(descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    async def _wait_for_lock(self, descriptor: int) -> bool:
        deadline = time.monotonic() + self._timeout
        while not await self._calls.run(_try_lock, descriptor):
            if time.monotonic() >= deadline:
                return False
            await self._calls.pause(POLL)
        return True


def _open_file(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Others are of a file system without locks: fetching twice is better than failing.
        return not isinstance(error, BlockingIOError)
    return True

"""Watch the credential files of a backend: after a refusal, new credentials end the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from specmux_aggregator.model.backend import Backend

LOOK: Final = 1.0
"""Seconds between checks, each a stat per file."""


def credential_files(backend: Backend) -> tuple[Path, ...]:
    """The files with our credentials, not those that verify the backend."""
    found = (backend.credentials.token_file, backend.tls.cert_file, backend.tls.key_file)
    return tuple(path for path in found if path is not None)


async def until_changed(files: Iterable[Path]) -> None:
    """Return when one of the files is written or replaced."""
    paths = tuple(files)
    before = await asyncio.to_thread(_fingerprints, paths)
    while await asyncio.to_thread(_fingerprints, paths) == before:
        await asyncio.sleep(LOOK)


def _fingerprints(paths: Iterable[Path]) -> list[tuple[int, int, int] | None]:
    return [_fingerprint(path) for path in paths]


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)

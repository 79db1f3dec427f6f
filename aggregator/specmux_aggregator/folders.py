"""The files below a folder. The one walker: what is hidden is the same for every command and every origin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn

WELL_KNOWN: Final = ".well-known"
"""A key of Kubernetes; every other hidden folder is a ConfigMap's "..data" or a repository."""


def _raised(error: OSError) -> NoReturn:
    raise error


def walked(
    folder: Path,
    is_wanted: Callable[[str], bool],
    *,
    refuse: Callable[[OSError], None] = _raised,
) -> Iterator[Path]:
    """Files whose name is wanted: those of a folder by their names, then those of the folders below it.

    Hidden folders are skipped, and links to folders: files of a mounted ConfigMap are seen through their
    visible links alone. ``refuse``: called for a folder that cannot be read, the first included.
    """
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith(".") or name == WELL_KNOWN)
        for name in sorted(names):
            path = Path(parent, name)
            if is_wanted(name) and path.is_file():
                yield path

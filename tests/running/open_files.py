"""The files that this process holds open."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

OWN = Path("/proc/self/fd")

needs_proc = pytest.mark.skipif(not OWN.is_dir(), reason="no /proc to see open files in")


def open_in(folder: Path) -> set[str]:
    """Their names below the folder."""
    found = set()
    for descriptor in list(OWN.iterdir()):
        with contextlib.suppress(OSError):  # closed by now
            if (target := descriptor.readlink()).is_relative_to(folder):
                found.add(str(target.relative_to(folder)))
    return found

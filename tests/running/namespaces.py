"""A process with mounts of its own, where the kernel lets us: root may, and others where user namespaces are
open to them."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest


@cache
def own_mounts() -> tuple[str, ...] | None:
    """The command that runs another one with mounts of its own; None where there is no way."""
    tool = shutil.which("unshare")
    if tool is None or shutil.which("mount") is None:
        return None
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    command = (tool, *as_root, "--mount", "--propagation", "private")
    tried = subprocess.run(
        [*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=10, check=False
    )
    return command if tried.returncode == 0 else None


def require_own_mounts() -> tuple[str, ...]:
    command = own_mounts()
    if command is None:
        pytest.skip("no mount namespaces here (unshare)")
    return command

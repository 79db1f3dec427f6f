"""Processor time of a process and of those that it started (Linux)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def family(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    parents = dict(tuple(map(int, line.split())) for line in listing.splitlines()[1:])  # type: ignore[misc]
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def cpu_of(pid: int) -> float:
    """Seconds of CPU of a process and those below it (Linux)."""
    total = 0.0
    for member in family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total

"""Checks that a wheel holds the four packages and nothing else: ``wheel_contents.py WHEEL``."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PACKAGES = {
    "specmux_aggregator": "aggregator",
    "specmux_converters": "converters",
    "specmux_cache": "cache",
    "specmux_tools": "tools",
}


def faults(wheel: Path, root: Path) -> list[str]:
    """What the wheel lacks or has too much of, compared with the source tree at ``root``."""
    archive = zipfile.ZipFile(wheel)
    names = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {
        f"{package}/{path.relative_to(root / folder / package).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in (root / folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return [
        *(f"missing: {name}" for name in sorted(wanted - names)),
        *(f"unexpected: {name}" for name in sorted(names - wanted)),
    ]


if __name__ == "__main__":
    found = faults(Path(sys.argv[1]), Path(__file__).resolve().parents[2])
    print("\n".join(found) or "the wheel holds the four packages and nothing else")
    sys.exit(bool(found))

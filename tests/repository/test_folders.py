"""Folders of the product stay small enough to be read at a glance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGES = ("aggregator", "converters", "cache", "schemas")
MOST = 20
FLAT = {"aggregator/specmux_aggregator/commands": 27, "aggregator/specmux_aggregator/server": 27}
"""One module a command, and one subject: rooms that need no floors."""


def test_no_folder_has_more_modules_than_its_bound() -> None:
    modules = Counter(
        module.parent.relative_to(TOP).as_posix()
        for package in PACKAGES
        for module in TOP.joinpath(package).rglob("*.py")
    )
    assert len(modules) > 50
    assert {folder: n for folder, n in modules.items() if n > FLAT.get(folder, MOST)} == {}

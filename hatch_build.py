"""Writes the man pages into the wheel, as ``share/man/man1``: made from the commands' help while it is built.

``man specmux`` then finds them wherever ``specmux`` is on ``PATH`` (man-db looks beside ``bin``). Help
says what settings there are, so building wants what running wants: the option
``require-runtime-dependencies`` of this hook in pyproject.toml.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("aggregator", "cache", "converters", "schemas")


class ManPages(BuildHookInterface):  # type: ignore[type-arg]
    """Has no pages for an editable install, whose commands change."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path[:0] = [str(Path(self.root, name)) for name in PACKAGES]
        from specmux_aggregator.cli import main
        from specmux_aggregator.commands.man import pages

        self._folder = TemporaryDirectory(prefix="specmux-man-")
        for name, page in pages(main):
            path = Path(self._folder.name, f"{name}.1")
            path.write_text(page, encoding="utf-8")
            build_data["shared_data"][str(path)] = f"share/man/man1/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()

"""Makes what the wheel has beside the packages: man pages, and the long description of the package index.

The man pages, ``share/man/man1``, are made from the commands' help. The description is README.md, whose
relative links lead to files of a clone, with absolute ones.

``man specmux`` then finds them wherever ``specmux`` is on ``PATH`` (man-db looks beside ``bin``). Help
says what settings there are, so building wants what running wants: the option
``require-runtime-dependencies`` of this hook in pyproject.toml.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = "https://github.com/specmux/specmux/blob/main/"
FILES = "https://raw.githubusercontent.com/specmux/specmux/main/"
_LINK = re.compile(r'(?P<before>\]\(| (?:src|srcset)=")(?P<target>(?!https?:|#)[^)"]+)')
PACKAGES = ("aggregator", "cache", "converters", "tools")


def long_description(readme: str) -> str:
    """``readme`` with absolute links: pages as pages, pictures as their bytes."""

    def absolute(match: re.Match[str]) -> str:
        target = match["target"]
        base = FILES if target.endswith((".png", ".svg")) else PAGES
        return f"{match['before']}{base}{target}"

    return _LINK.sub(absolute, readme)


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(readme)}


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

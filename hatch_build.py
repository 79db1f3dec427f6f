"""Makes the long description for the package index: README.md, its relative links absolute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = "https://github.com/specmux/specmux/blob/main/"
FILES = "https://raw.githubusercontent.com/specmux/specmux/main/"
_LINK = re.compile(r'(?P<before>\]\(| (?:src|srcset)=")(?P<target>(?!https?:|#)[^)"]+)')


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

"""Makes the long description for the package index: README.md, its relative links absolute."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r'(?P<before>\]\(| (?:src|srcset)=")(?P<target>(?!https?:|#)[^)"]+)')


def long_description(readme: str, home: str) -> str:
    """``readme`` with links into the repository at ``home``, or without them while there is none."""
    if not home:
        readme = re.sub(r"<picture>.*?</picture>\n*", "", readme)
        return re.sub(r"!?\[([^\]]*)\]\((?!https?:|#)[^)]+\)", r"\1", readme)

    def absolute(match: re.Match[str]) -> str:
        target = match["target"]
        kind = "raw" if target.endswith((".png", ".svg")) else "blob"
        return f"{match['before']}{home}/{kind}/main/{target}"

    return _LINK.sub(absolute, readme)


def urls(home: str) -> dict[str, str]:
    if not home:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
        "Source": home,
    }


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        project = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))
        home = project["tool"]["specmux"]["home"]
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(readme, home)}
        metadata["urls"] = urls(home)

"""For the site: links out of this folder, which work in the repository, lead to the repository; in tables,
code has its bars without the backslash that only GitHub takes away."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

HOME: str = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["tool"]["specmux"][
    "home"
]
"""Of the repository; "" while it is not published: such links are then plain text, numbered ones gone."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs calls it for every page."""
    linked = (
        re.sub(r"\]\(\.\./", f"]({HOME}/blob/main/", markdown)
        if HOME
        else re.sub(r"\[(?:\[\d+\]|([^\]]*))\]\(\.\./[^)]*\)", r"\1", markdown)
    )
    return re.sub(r"^\|.*$", lambda row: _unescaped(row[0]), linked, flags=re.MULTILINE)


def _unescaped(row: str) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row)

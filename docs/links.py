"""For the site: links out of this folder, which work in the repository, lead to the repository; in tables,
code has its bars without the backslash that only GitHub takes away."""

from __future__ import annotations

import re
from typing import Any

REPOSITORY = "https://github.com/specmux/specmux/blob/main/"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs calls it for every page."""
    linked = re.sub(r"\]\(\.\./", f"]({REPOSITORY}", markdown)
    return re.sub(r"^\|.*$", lambda row: _unescaped(row[0]), linked, flags=re.MULTILINE)


def _unescaped(row: str) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row)

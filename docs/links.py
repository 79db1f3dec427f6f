"""For the site: links out of this folder, which work in the repository, lead to the repository."""

from __future__ import annotations

import re
from typing import Any

REPOSITORY = "https://github.com/specmux/specmux/blob/main/"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs calls it for every page."""
    return re.sub(r"\]\(\.\./", f"]({REPOSITORY}", markdown)

"""Descriptions as HTML. They come from whoever wrote an API, so nothing of them is markup: every character is
escaped, and only http and https links are links.
"""

from __future__ import annotations

import re
from typing import Final

from markupsafe import escape

_LINK: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}`\\^|]+")
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_TRAILING: Final = ".,;:!?*"


def prose(text: str) -> str:
    """Paragraphs with links."""
    return "".join(f"<p>{linked(part)}</p>" for part in _PARAGRAPHS.split(text.strip()) if part)


def linked(text: str) -> str:
    parts: list[str] = []
    end = 0
    for match in _LINK.finditer(text):
        url = match[0].rstrip(_TRAILING)
        parts.append(str(escape(text[end : match.start()])))
        parts.append(f'<a href="{escape(url)}" rel="noopener noreferrer">{escape(url)}</a>')
        end = match.start() + len(url)
    parts.append(str(escape(text[end:])))
    return "".join(parts)

"""Descriptions as HTML. The text is untrusted: every character is escaped, and only http and https URLs
become links, and only what stands in backquotes becomes code."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import escape

_LINK: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}`\\^|]+")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?](?:\s+(?=[A-Z\"'`(*])|\s*\n)")
_TRAILING: Final = ".,;:!?*"
SHORT: Final = 200
"""Characters of the longest description that is shown whole."""


def prose(text: str) -> str:
    """Paragraphs with links."""
    return "".join(f"<p>{link_text(part)}</p>" for part in _PARAGRAPHS.split(text.strip()) if part)


def beginning(text: str, *, is_whole: bool) -> tuple[str, str]:
    """The first sentence of a description, and the rest. A short description has no rest unless it has a link
    and ``is_whole`` is false: links belong in the rest."""
    text = text.strip()
    first, *more = _PARAGRAPHS.split(text, maxsplit=1)
    if not more and len(text) <= SHORT and (is_whole or "://" not in text):
        return text, ""
    end = _SENTENCE.search(first)
    if end is None:
        return first, "".join(more)
    return first[: end.start() + 1], text[end.end() :]


def link_text(text: str) -> str:
    """Text with links, and with code where it stands in backquotes."""
    parts: list[str] = []
    end = 0
    for match in _LINK.finditer(text):
        url = match[0].rstrip(_TRAILING)
        parts.append(mark_code(text[end : match.start()]))
        parts.append(f'<a href="{escape(url)}">{escape(url)}</a>')
        end = match.start() + len(url)
    parts.append(mark_code(text[end:]))
    return "".join(parts)


def mark_code(text: str) -> str:
    """Text with code where it stands in backquotes, and without links."""
    return _CODE.sub(r"<code>\1</code>", str(escape(text)))

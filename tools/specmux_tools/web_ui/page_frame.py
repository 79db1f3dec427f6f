"""The frame of each page, by Jinja2 with autoescape: head, search box, footer; and descriptions as HTML.

A description is untrusted: every character is escaped, and only http and https URLs become links, and only
what stands in backquotes becomes code."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup, escape

from specmux_aggregator.reader.assets import assets
from specmux_aggregator.reader.requests import SiteParts

_LINK: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}`\\^|]+")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?](?:\s+(?=[A-Z\"'`(*])|\s*\n)")
_TRAILING: Final = ".,;:!?*"
SHORT: Final = 200
"""Characters of the longest description that is shown whole."""
_WORDS: Final = re.compile(r"(?<=[.])(?=.)|(?<=[a-z0-9])(?=[A-Z])")


@cache
def environment() -> Any:
    """Jinja2's, which compiles a template when it is first got."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(__package__).joinpath("templates")
    made = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    made.filters["coded"] = lambda text: Markup(mark_code(text))  # noqa: S704  # escaped there
    return made


def breakable(name: str) -> Markup:
    """A name with places where a line may break: behind a dot, before a word."""
    return Markup("<wbr>").join(_WORDS.split(name))


def render_page(template: str, *, root: str, title: str, site: SiteParts, **values: Any) -> bytes:
    """``root``: the relative path from the page to the home page, "./" for home itself."""
    named = {name.rpartition(".")[2]: asset.name for name, asset in assets().items()}
    frame = environment().get_template(template)
    given = {"query": "", "current": "", **values}
    text: str = frame.render(root=root, title=title, site=site, asset=named, **given)
    return text.encode()


def bare_error(code: int, message: str) -> bytes:
    """A page without a frame, for when rendering fails."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        f"<title>{code} · specmux</title><main><h1>{code}</h1><p>{escape(message)}</p></main></html>"
    ).encode()


def prose(text: str) -> str:
    """Paragraphs with links."""
    return "".join(f"<p>{link_text(part)}</p>" for part in _PARAGRAPHS.split(text.strip()) if part)


def split_description(text: str, *, is_whole: bool) -> tuple[str, str]:
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

"""The frame of each page: head, search box, footer. Jinja2 with autoescape."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup, escape

from specmux_aggregator.reader.assets import assets
from specmux_aggregator.reader.requests import SiteParts
from specmux_tools.web_ui.markdown_links import mark_code

_PACKAGE: Final = "specmux_tools.web_ui"
_WORDS: Final = re.compile(r"(?<=[.])(?=.)|(?<=[a-z0-9])(?=[A-Z])")


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(_PACKAGE).joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    environment.filters["coded"] = lambda text: Markup(mark_code(text))  # noqa: S704  # escaped there
    return environment


def load(*templates: str) -> None:
    """Import Jinja2 and compile these ahead of the first page."""
    for template in templates:
        _environment().get_template(template)


def breakable(name: str) -> Markup:
    """A name with places where a line may break: behind a dot, before a word."""
    return Markup("<wbr>").join(_WORDS.split(name))


def render_page(template: str, *, root: str, title: str, site: SiteParts, **values: Any) -> bytes:
    """``root``: the relative path from the page to the home page, "./" for home itself."""
    named = {name.rpartition(".")[2]: asset.name for name, asset in assets().items()}
    frame = _environment().get_template(template)
    given = {"query": "", "current": "", **values}
    text: str = frame.render(root=root, title=title, site=site, asset=named, **given)
    return text.encode()


def bare_error(code: int, message: str) -> bytes:
    """A page without a frame, for when rendering fails."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        f"<title>{code} · specmux</title><main><h1>{code}</h1><p>{escape(message)}</p></main></html>"
    ).encode()

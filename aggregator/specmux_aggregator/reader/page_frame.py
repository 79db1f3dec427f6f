"""The frame of each page: head, search box, footer. Jinja2 with autoescape; assets are named by their
hash."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup, escape

_PACKAGE: Final = "specmux_aggregator.reader"
_WORDS: Final = re.compile(r"(?<=[.])(?=.)|(?<=[a-z0-9])(?=[A-Z])")
_COMMENTS: Final = re.compile(rb"^ *//.*\n", re.MULTILINE)
CONTENT_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    name: str
    """Includes its hash, so its content never changes."""
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteParts:
    """Optional parts of a service that pages link to."""

    is_logged: bool = False
    """Whether a change log is kept."""
    can_validate: bool = False
    has_schemas: bool = False
    """Whether JSON Schemas of its kinds are served."""
    has_swagger: bool = False


@cache
def assets() -> dict[str, Asset]:
    """By name without the hash."""
    found = {}
    for file in sorted(files(_PACKAGE).joinpath("assets").iterdir(), key=lambda each: each.name):
        # Comments stay here: a browser has no use for them.
        body = _COMMENTS.sub(b"", file.read_bytes()) if file.name.endswith(".js") else file.read_bytes()
        found[file.name] = asset_of(file.name, body)
    return found


def asset_of(name: str, body: bytes) -> Asset:
    stem, _, ending = name.rpartition(".")
    digest = hashlib.sha256(body).hexdigest()[:16]
    return Asset(f"{stem}.{digest}.{ending}", CONTENT_TYPES[ending], body)


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
    return environment


def load(*templates: str) -> None:
    """Import Jinja2 and compile these ahead of the first page."""
    for template in templates:
        _environment().get_template(template)


def breakable(name: str) -> Markup:
    """A name with places where a line may break: behind a dot, before a word."""
    return Markup("<wbr>").join(_WORDS.split(name))


def rendered(template: str, *, root: str, title: str, site: SiteParts, **values: Any) -> bytes:
    """``root``: the relative path from the page to the home page, "./" for home itself."""
    named = {name.rpartition(".")[2]: asset.name for name, asset in assets().items()}
    frame = _environment().get_template(template)
    given = {"query": "", "current": "", **values}
    text: str = frame.render(root=root, title=title, site=site, asset=named, **given)
    return text.encode()


def root_from(below: str) -> str:
    """The relative path from a page to the home page, given its path below home."""
    return "../" * below.count("/") or "./"


def bare_error(code: int, message: str) -> bytes:
    """A page without a frame, for when rendering fails."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        f"<title>{code} · specmux</title><main><h1>{code}</h1><p>{escape(message)}</p></main></html>"
    ).encode()

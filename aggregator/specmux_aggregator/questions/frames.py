"""The frames around what is shown: head, search box, footer. Jinja2 with autoescape; assets by their hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from markupsafe import escape

_PACKAGE: Final = "specmux_aggregator.questions"
CONTENT_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    name: str
    """With its hash: what is in it never changes."""
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteParts:
    """Parts that a service may have beside its documents, for pages to link to."""

    is_logged: bool = False
    """A change log."""
    can_validate: bool = False
    has_schemas: bool = False
    """JSON Schemas of its kinds."""
    has_swagger: bool = False


@cache
def assets() -> dict[str, Asset]:
    """By the name without the hash."""
    found = {}
    for file in sorted(files(_PACKAGE).joinpath("assets").iterdir(), key=lambda each: each.name):
        found[file.name] = asset_of(file.name, file.read_bytes())
    return found


def asset_of(name: str, body: bytes) -> Asset:
    stem, _, ending = name.rpartition(".")
    digest = hashlib.sha256(body).hexdigest()[:16]
    return Asset(f"{stem}.{digest}.{ending}", CONTENT_TYPES[ending], body)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(_PACKAGE).joinpath("templates")
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, *, root: str, title: str, site: SiteParts, **values: Any) -> bytes:
    """``root``: the way from the page to the home page, "./" from home itself."""
    named = {name.rpartition(".")[2]: asset.name for name, asset in assets().items()}
    frame = _environment().get_template(template)
    given = {"query": "", "current": "", **values}
    text: str = frame.render(root=root, title=title, site=site, asset=named, **given)
    return text.encode()


def root_from(below: str) -> str:
    """The way home from a page, by its path below the home page."""
    return "../" * below.count("/") or "./"


def bare_error(code: int, message: str) -> bytes:
    """Without a frame, for it is shown when nothing can be rendered."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        f"<title>{code} · specmux</title><main><h1>{code}</h1><p>{escape(message)}</p></main></html>"
    ).encode()

"""Files of the web UI that are served as they are, named by their hash; the page for when rendering fails."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

_PACKAGE: Final = "specmux_aggregator.reader"
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


def root_from(below: str) -> str:
    """The relative path from a page to the home page, given its path below home."""
    return "../" * below.count("/") or "./"


def bare_error(code: int, message: str) -> bytes:
    """A page without a frame, for when rendering fails."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        f"<title>{code} · specmux</title><main><h1>{code}</h1><p>{escape(message)}</p></main></html>"
    ).encode()

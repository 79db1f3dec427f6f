"""Swagger UI's page: a frame around files of the extra ``specmux[swagger-ui]``.

A file is served only if its content matches the digest pinned here, whatever is installed.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from specmux_aggregator.reader.assets import Asset, asset_of, assets

RELEASE: Final = "5.35.0"
PINNED: Final = {
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "swagger-ui-standalone-preset.js": "5243d492e14505e0cab87ac8b0195d0e615943e651743b2b698450a46eb470be",
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
}
"""SHA-256 of the served files of swagger-ui-dist."""


class SwaggerUiUnusable(Exception):
    """The extra is missing or has other files. The message says what to do."""


def swagger_assets(folder: Traversable | None = None) -> dict[str, Asset]:
    """Assets by name without the hash, including those of specmux. ``folder``: use it instead of the
    installed extra.

    Raises SwaggerUiUnusable.
    """
    folder = folder or _installed()
    found = {}
    for name, pinned in PINNED.items():
        try:
            body = folder.joinpath(name).read_bytes()
        except OSError as error:
            raise SwaggerUiUnusable(
                f"specmux-swagger-ui has no {name}; install specmux[swagger-ui]"
            ) from error
        if hashlib.sha256(body).hexdigest() != pinned:
            raise SwaggerUiUnusable(
                f"{name} of specmux-swagger-ui is not that of Swagger UI {RELEASE}, which is pinned; "
                "install specmux[swagger-ui] anew"
            )
        found[name] = asset_of(name, body)
    ours = files("specmux_aggregator.reader").joinpath("swagger")
    for name in ("start.css", "start.js"):
        found[f"swagger-{name}"] = asset_of(f"swagger-{name}", ours.joinpath(name).read_bytes())
    return found


def swagger_page(named: dict[str, Asset], *, root: str) -> bytes:
    """``root``: the relative path from the page to /openapi/v3."""
    scripts = "".join(
        f'<script src="assets/{named[name].name}"></script>\n'
        for name in ("swagger-ui-bundle.js", "swagger-ui-standalone-preset.js")
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Swagger UI · specmux</title>\n"
        f'<link rel="icon" href="../assets/{assets()["icon.svg"].name}">\n'
        f'<link rel="stylesheet" href="assets/{named["swagger-ui.css"].name}">\n'
        f'<link rel="stylesheet" href="assets/{named["swagger-start.css"].name}">\n</head>\n'
        f'<body data-root="{root}">\n<a class="home" href="../">All kinds</a>\n<div id="swagger-ui"></div>\n'
        f'{scripts}<script type="module" src="assets/{named["swagger-start.js"].name}"></script>\n'
        "</body>\n</html>\n"
    ).encode()


def _installed() -> Traversable:
    try:
        return files("specmux_swagger_ui").joinpath("files")
    except ModuleNotFoundError as error:
        raise SwaggerUiUnusable("ui.swagger wants the extra: install specmux[swagger-ui]") from error

"""Options of a client, and the reference server in front of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakes.openapi_server import Reference, document
from specmux_cache import CacheOptions

CORE = document("core", filler="x" * 200_000)


def reference() -> Reference:
    return Reference({"api/v1": CORE})


def options(directory: Path, **more: Any) -> CacheOptions:
    return CacheOptions(directory=directory / "c", **more)

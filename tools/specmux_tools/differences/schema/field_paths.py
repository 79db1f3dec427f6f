"""Notation of field paths: ``spec.containers[].env[].name``, with ``{}`` for a map's values.

Paths are built from the inside out: each step is prepended and brings its own dot.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

ITEMS: Final = "[]"
VALUES: Final = "{}"

_PLAIN: Final = re.compile(r"[^\s.\[\]{}\"\\]+")


def step(name: str) -> str:
    """One property: ``.name``, or ``["ca.crt"]`` if the name could be read as several steps."""
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{orjson.dumps(name).decode()}]"


def printed_path(steps: str) -> str:
    """The path as reports print it, without the leading dot."""
    return steps.removeprefix(".")


def is_status(path: str) -> bool:
    """Whether a printed path is the kind's status or a field of it."""
    return path == "status" or path.startswith(("status.", "status[", "status{"))

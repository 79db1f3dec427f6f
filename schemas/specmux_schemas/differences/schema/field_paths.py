"""How the place of a field is written: ``spec.containers[].env[].name``, ``{}`` for a map's values.

Paths are built from the inside out, each step in front of what lies below it, so a step brings its own dot.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

ITEMS: Final = "[]"
VALUES: Final = "{}"

_PLAIN: Final = re.compile(r"[^\s.\[\]{}\"\\]+")


def step(name: str) -> str:
    """One property: ``.name``, or ``["ca.crt"]`` where its name could be read as more than one step."""
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{orjson.dumps(name).decode()}]"


def shown(steps: str) -> str:
    """The path as reports have it, without the first dot."""
    return steps.removeprefix(".")


def is_status(path: str) -> bool:
    """Whether a shown path is the kind's status or lies below it."""
    return path == "status" or path.startswith(("status.", "status[", "status{"))

"""A Part is a converted piece of a document, a path or a component, made once per content.

A Part *is* its canonical JSON. The tree is parsed from it on demand: its keys are sorted whatever the order
of the input, it shares nothing with the input, and users of JSON never pay for it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import orjson

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss
from specmux_converters.own_memory import in_own_memory


@dataclass(slots=True)
class DocumentPart:
    """``refs``: the components that the part refers to ("schemas/Pod")."""

    json: bytes
    refs: frozenset[str]
    losses: tuple[Loss, ...]
    tree: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.json = in_own_memory(self.json)

    def value(self) -> dict[str, Any]:
        """The same dict every time: read-only."""
        if self.tree is None:
            self.tree = orjson.loads(self.json)
        return self.tree

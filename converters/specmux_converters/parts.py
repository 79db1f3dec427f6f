"""A Part is one converted piece of a document, a path or a component. It is made once per content.

A Part *is* its canonical JSON. The tree is parsed from that when first asked for, so the order of its keys is
the sorted one whatever order the input had, it shares nothing with the input, and who wants JSON alone never
pays for it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import orjson

from specmux_converters.losses import Loss


@dataclass(slots=True)
class Part:
    """``refs`` are the components that the part names ("schemas/Pod")."""

    json: bytes
    refs: frozenset[str]
    losses: tuple[Loss, ...]
    tree: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    def value(self) -> dict[str, Any]:
        """The same dict every time: read it, never write into it."""
        if self.tree is None:
            self.tree = orjson.loads(self.json)
        return self.tree


class ConversionMemo:
    """Parts of earlier conversions, so that what did not change is not converted again.

    Held by the caller, for any number of documents, from one thread at a time. ``max_bytes`` bounds the JSON
    of what is kept (the parsed form takes several times as much); the part used longest ago goes first.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._parts: dict[Hashable, tuple[Part, int]] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def get(self, key: Hashable) -> Part | None:
        entry = self._parts.pop(key, None)
        if entry is None:
            return None
        self._parts[key] = entry
        return entry[0]

    def put(self, key: Hashable, part: Part, *, cost: int) -> None:
        """``cost`` is in bytes. A part that is larger than the whole memo is not kept."""
        replaced = self._parts.pop(key, None)
        if replaced is not None:
            self._bytes -= replaced[1]
        if cost > self._max_bytes:
            return
        self._parts[key] = (part, cost)
        self._bytes += cost
        while self._bytes > self._max_bytes:
            _, dropped = self._parts.pop(next(iter(self._parts)))
            self._bytes -= dropped

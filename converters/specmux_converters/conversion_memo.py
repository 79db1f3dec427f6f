"""What conversions remember from one to the next: parts by their text, and documents by theirs."""

from __future__ import annotations

from collections.abc import Hashable

from specmux_converters.own_memory import in_own_memory
from specmux_converters.parts import Part
from specmux_converters.revisions import Revisions


class ConversionMemo:
    """Parts of earlier conversions, so that what did not change is not converted again.

    Held by the caller, for any number of documents, from one thread at a time. ``max_bytes`` bounds the JSON
    of what is kept (the parsed form takes several times as much); the part used longest ago goes first. The
    documents that are kept parsed, for their next revision, have a bound of the same size beside it.

    A part is found by its place and the length of its text, and then the texts are compared: that reads them
    several times as fast as a hash does. Of texts of one length in one place the last is kept.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._parts: dict[tuple[Hashable, int], tuple[bytes, Part]] = {}
        self.revisions = Revisions(max_bytes=max_bytes)

    def __len__(self) -> int:
        return len(self._parts)

    def get(self, place: Hashable, text: bytes) -> Part | None:
        key = place, len(text)
        entry = self._parts.pop(key, None)
        if entry is None:
            return None
        self._parts[key] = entry
        return entry[1] if entry[0] == text else None

    def put(self, place: Hashable, text: bytes, part: Part) -> None:
        """``text`` is what ``part`` was made of. One that is larger than the whole memo is not kept."""
        key = place, len(text)
        self._drop(key)
        cost = _cost(text, part)
        if cost > self._max_bytes:
            return
        self._parts[key] = in_own_memory(text), part
        self._bytes += cost
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._parts)))

    def _drop(self, key: tuple[Hashable, int]) -> None:
        dropped = self._parts.pop(key, None)
        if dropped is not None:
            self._bytes -= _cost(*dropped)


def _cost(text: bytes, part: Part) -> int:
    return len(text) + len(part.json)

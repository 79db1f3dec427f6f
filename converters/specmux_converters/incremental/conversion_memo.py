"""What conversions remember: parts by their text, and documents by theirs."""

from __future__ import annotations

from collections.abc import Hashable

from specmux_converters.byte_bounded import ByteBounded
from specmux_converters.incremental.parts import DocumentPart
from specmux_converters.incremental.revisions import Revisions
from specmux_converters.own_memory import in_own_memory


class ConversionMemo:
    """Parts of earlier conversions, so that unchanged ones are not converted again.

    Owned by the caller, for any number of documents, from one thread at a time. ``max_bytes`` bounds the JSON
    of kept parts (the parsed form takes several times as much); the least recently used is evicted. Parsed
    documents, kept for their next revision, have a bound of the same size.

    A part is found by its place and the length of its text, and then the texts are compared, which is several
    times as fast as hashing. Of texts with equal place and length, the last is kept.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._parts: ByteBounded[tuple[Hashable, int], tuple[bytes, DocumentPart]] = ByteBounded(
            max_bytes, size=_cost
        )
        self.revisions = Revisions(max_bytes=max_bytes)

    def __len__(self) -> int:
        return len(self._parts)

    def get(self, place: Hashable, text: bytes) -> DocumentPart | None:
        entry = self._parts.get((place, len(text)))
        return entry[1] if entry is not None and entry[0] == text else None

    def put(self, place: Hashable, text: bytes, part: DocumentPart) -> None:
        """``text``: the input of ``part``. A part larger than the whole memo is not kept."""
        self._parts.put((place, len(text)), (in_own_memory(text), part))


def _cost(entry: tuple[bytes, DocumentPart]) -> int:
    return len(entry[0]) + len(entry[1].json)

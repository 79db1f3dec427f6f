"""Documents that were parsed before, so that a revision is parsed only where it differs.

A revision is found by its bytes, never by a name: the result equals ``parse`` of the same text.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import Any, Final

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits, parse
from specmux_converters.errors import ConverterError
from specmux_converters.incremental.member_spans import Span, changes, member_spans, moved
from specmux_converters.incremental.parts import DocumentPart
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Loss

_SECTIONS: Final = ("definitions", "paths")
_MIN_BYTES: Final = 64 * 1024
"""Smaller documents are parsed in less than a millisecond."""

_TEXT_FACTOR: Final = 4
"""Memory relative to the text: text, strings of the tree, and what is made from them."""
_VALUE_COST: Final = 100
"""Bytes of a value in the tree beside its text."""


@dataclass(slots=True)
class Revision:
    """``document`` is read-only: an identical node has unchanged content. ``made``: a member of a section ->
    what mattered beside the node, the node, and the resulting part."""

    data: bytes
    document: Document
    limits: Limits
    cost: int
    spans: list[Span] | None = None
    made: dict[tuple[str | int, ...], tuple[Hashable, Any, DocumentPart]] = field(default_factory=dict)

    def part(self, path: tuple[str | int, ...], depends_on: Hashable, node: Any) -> DocumentPart | None:
        kept = self.made.get(path)
        return kept[2] if kept is not None and kept[1] is node and kept[0] == depends_on else None


class Revisions:
    """The last revisions within ``max_bytes``; evicts the least recently used.

    A small document, or one with losses in parsing, is not kept.
    """

    def __init__(self, *, max_bytes: int = 64 * 1024 * 1024, min_bytes: int = _MIN_BYTES) -> None:
        self._max_bytes = max_bytes
        self._min_bytes = min_bytes
        self._kept: list[Revision] = []

    def __len__(self) -> int:
        return len(self._kept)

    def parse(
        self, data: bytes, *, limits: Limits = DEFAULT_LIMITS, losses: list[Loss] | None = None
    ) -> Document:
        """As ``document.parse``, but the result is read-only."""
        limits.check_bytes(data)
        limits.check_values(data)
        for index, known in enumerate(self._kept):
            if known.limits == limits and (revision := _revised(known, data)) is not None:
                del self._kept[index]
                self._keep(revision)
                return revision.document
        lost: list[Loss] = []
        document = parse(data, limits=limits, losses=lost)
        if losses is not None:
            losses += lost
        if len(data) >= self._min_bytes and _SECTIONS[0] in document and not lost:
            self._keep(Revision(data, document, limits, _cost(data)))
        return document

    def of(self, document: Document) -> Revision | None:
        """The revision with this very object."""
        return next((kept for kept in self._kept if kept.document is document), None)

    def _keep(self, revision: Revision) -> None:
        if revision.cost > self._max_bytes:
            return
        self._kept.insert(0, revision)
        total = 0
        for index, kept in enumerate(self._kept):
            total += kept.cost
            if total > self._max_bytes:
                del self._kept[index:]
                break


def _revised(known: Revision, data: bytes) -> Revision | None:
    """The revision with this text. None if it differs in anything but members of sections, or is faulty: the
    error, with its place, is found by parsing it completely."""
    if known.data == data:
        return known
    if 2 * len(data) < len(known.data) or not data.startswith(known.data[:1]):
        return None
    if known.spans is None:
        known.spans = member_spans(known.data, known.document, _SECTIONS)
    changed = changes(known.data, known.spans, data)
    if changed is None:
        return None
    document = {**known.document}
    for section in {known.spans[change.number].section for change in changed}:
        document[section] = {**document[section]}
    cost = known.cost
    for number, start, end in changed:
        before, value = known.spans[number], data[start:end]
        try:
            document[before.section][before.name] = _value(value, known.limits)
        except (ConverterError, _NotSoSimple):
            return None
        cost += _cost(value) - _cost(known.data[before.start : before.end])
    return Revision(data, document, known.limits, cost, moved(known.spans, changed), known.made)


class _NotSoSimple(Exception):
    """More than one value, or a loss whose place has to be determined."""


def _value(text: bytes, limits: Limits) -> Any:
    """The member of a section with this text, under the conditions of ``parse``. Its depth is unchanged."""
    losses: list[Loss] = []
    inside = parse(b'{"":{"":' + text + b"}}", limits=limits, losses=losses)
    if losses or len(inside) != 1 or len(inside[""]) != 1:
        raise _NotSoSimple
    return inside[""][""]


def _cost(text: bytes) -> int:
    values = text.count(b",") + text.count(b"{") + text.count(b"[")
    return _TEXT_FACTOR * len(text) + _VALUE_COST * values

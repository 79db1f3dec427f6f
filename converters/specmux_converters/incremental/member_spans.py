"""Positions of members in a JSON text, and the members that differ in a revision with the same members.

Nothing is guessed: replacing one complete JSON value by another gives JSON with that value, whatever
surrounds it (RFC 8259, section 2).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from specmux_converters.lazy.patterns import pattern

_BEFORE_KEY: Final = pattern(r'[ \t\r\n]*[{,][ \t\r\n]*(?=")')
_BEFORE_VALUE: Final = pattern(r"[ \t\r\n]*:[ \t\r\n]*")
_BLOCK: Final = 64 * 1024
"""Bytes compared at once."""

_SCAN: Final = json.JSONDecoder(
    strict=False, object_pairs_hook=len, parse_int=len, parse_float=len, parse_constant=len
).raw_decode
"""The standard library's scanner reports where a value ends, unlike orjson. It constructs nothing of
objects."""


class Span(NamedTuple):
    """The value of ``name`` in the object ``section``: its first byte, and the byte after its last."""

    start: int
    end: int
    section: str
    name: str


class SpanChange(NamedTuple):
    """In the other text, the value of the span with this number lies from ``start`` to ``end``."""

    number: int
    start: int
    end: int


def member_spans(data: bytes, document: dict[str, Any], sections: Sequence[str]) -> list[Span]:
    """The values in those sections that are objects, in the order of the text.

    ``document``: the parsed ``data``, without duplicate keys, so both have the same order.
    """
    text = data.decode("latin-1")  # one character per byte; JSON's structure is ASCII
    spans = []
    for section, (start, _) in zip(document, _values(text, 0), strict=True):
        if section in sections and isinstance(document[section], dict):
            inside = zip(document[section], _values(text, start), strict=True)
            spans += [Span(*place, section, name) for name, place in inside]
    return spans


def changes(old: bytes, spans: Sequence[Span], new: bytes) -> list[SpanChange] | None:
    """The members that differ. None if something else differs, or nearly everything.

    Valid if the values at the returned positions are JSON: everything else consists of the same bytes as
    ``old``. The caller parses the values.
    """
    before = _common_start(old, new)
    after = _common_end(old, new, min(len(old), len(new)) - before)
    if 2 * (before + after) < len(old):
        return None
    first, last = _at(spans, before), _at(spans, len(old) - after)
    if first is None or last is None:
        return None
    found = []
    start = spans[first].start
    for index in range(first, last + 1):
        span = spans[index]
        if index == last:
            end = len(new) - (len(old) - span.end)
        else:
            between = old[span.end : spans[index + 1].start]
            end = start + span.end - span.start
            if not (new.startswith(old[span.start : span.end], start) and new.startswith(between, end)):
                end = new.find(between, start)
        if end < start:
            return None
        if new[start:end] != old[span.start : span.end]:
            found.append(SpanChange(index, start, end))
        if index < last:
            start = end + len(between)
    return found


def moved(spans: Sequence[Span], changed: Sequence[SpanChange]) -> list[Span]:
    """The positions of the same members in the text with the changes."""
    result: list[Span] = []
    done = shift = 0
    for change in changed:
        result += _shifted(spans[done : change.number], shift)
        _, old_end, section, name = spans[change.number]
        result.append(Span(change.start, change.end, section, name))
        done, shift = change.number + 1, change.end - old_end
    return result + _shifted(spans[done:], shift)


def _shifted(spans: Sequence[Span], by: int) -> list[Span]:
    if not by:
        return [*spans]
    return [Span(start + by, end + by, section, name) for start, end, section, name in spans]


def _values(text: str, position: int) -> Iterator[tuple[int, int]]:
    """The positions of the values of the object at ``position``."""
    while before := _BEFORE_KEY.match(text, position):
        _, position = _SCAN(text, before.end())
        colon = _BEFORE_VALUE.match(text, position)
        start = colon.end() if colon else position
        _, position = _SCAN(text, start)
        yield start, position


def _at(spans: Sequence[Span], position: int) -> int | None:
    """The span that contains a position, or ends there."""
    index = bisect_right(spans, position, key=lambda span: span.start) - 1
    return index if index >= 0 and position <= spans[index].end else None


def _common_start(one: bytes, other: bytes) -> int:
    """Length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high and other.startswith(one[low : low + _BLOCK], low):
        low = min(low + _BLOCK, high)
    high = min(low + _BLOCK, high)
    while low < high:  # the bytes before low are equal; high is the search limit
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    """Length of the common suffix, within the last ``most`` bytes."""
    low = 0
    high = most
    while low < high:
        size = min(_BLOCK, high - low)
        if not _ends_alike(one, other, low, low + size):
            high = low + size - 1
            break
        low += size
    while low < high:
        middle = (low + high + 1) // 2
        if _ends_alike(one, other, low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _ends_alike(one: bytes, other: bytes, low: int, high: int) -> bool:
    """Whether the bytes are equal from ``high`` to ``low`` before the end."""
    return one[len(one) - high : len(one) - low] == other[len(other) - high : len(other) - low]

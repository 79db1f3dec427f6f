"""Find the line and column of a path in a text: of its key or item, from 1.

Only for paths of violations. A path that is absent from the text (a missing field) has the place of the
nearest existing value above it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final

import yaml

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_tools.validation.report import Path

_TOKEN: Final = pattern(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^\s"{}\[\],:]+', re.DOTALL)


@dataclass(slots=True)
class TextPlace:
    """A path of interest: its places in the text, and the paths below it."""

    below: dict[str | int, TextPlace] = field(default_factory=dict)
    found: list[tuple[int, int]] = field(default_factory=list)
    """Line and column, in the order of the text."""
    wanted: int = 0
    """Number of paths that end here or below and were not found yet."""


class Places:
    """The paths to find, then their places."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.root = TextPlace()
        for path in paths:
            passed = [self.root]
            for part in path:
                passed.append(passed[-1].below.setdefault(part, TextPlace()))
            for place in passed if path else ():
                place.wanted += 1

    def of(self, path: Path, occurrence: int = 0) -> tuple[int, int] | None:
        """Line and column; of the last occurrence if there are fewer."""
        place = self.root
        best = place.found[:1]
        for part in path:
            following = place.below.get(part)
            if following is None or not following.found:
                return best[0] if best else None
            place = following
            best = place.found[:1]
        return place.found[min(occurrence, len(place.found) - 1)] if place.found else None

    def read_json(self, text: str, *, repeats: bool = False) -> None:
        """Read valid JSON. ``repeats``: whether paths may occur several times."""
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        stack: list[tuple[bool, TextPlace | None, int]] = []
        current: TextPlace | None = self.root
        awaits_key = False
        for match in _TOKEN.finditer(text):
            mark = match[0]
            if mark == ":":
                continue
            if mark in "}]":
                _, place, _ = stack.pop()
                awaits_key = False
                # Everything requested below it was found, or is absent.
                if place is not None and not repeats and self._settle(place, stack):
                    return
                continue
            if mark == ",":
                is_object, place, index = stack[-1]
                stack[-1] = (is_object, place, index + 1)
                awaits_key = is_object
                continue
            if awaits_key:
                awaits_key = False
                parent = stack[-1][1]
                current = parent.below.get(_key(mark)) if parent is not None and parent.below else None
                _note(current, match.start(), starts)
                if current is not None and not current.below and not repeats and self._settle(current, stack):
                    return
                continue
            if stack and not stack[-1][0]:
                _, parent, index = stack[-1]
                current = parent.below.get(index) if parent is not None else None
                _note(current, match.start(), starts)
            elif not stack:
                _note(current, match.start(), starts)
            if mark in "{[":
                stack.append((mark == "{", current, 0))
                awaits_key = mark == "{"

    def _settle(self, place: TextPlace, stack: list[tuple[bool, TextPlace | None, int]]) -> bool:
        """Note that nothing more is needed at this place; True if nothing more is needed anywhere."""
        gone, place.wanted = place.wanted, 0
        for _, above, _ in stack if gone else ():
            if above is not None:
                above.wanted -= gone
        return self.root.wanted <= 0

    def read_yaml(self, events: list[Any]) -> None:
        """Read the events of one document."""
        if events:
            _EventWalk(events).value(0, self.root)


class _EventWalk:
    def __init__(self, events: list[Any]) -> None:
        self._events = events
        self._anchored: dict[str, list[int]] | None = None

    def value(self, at: int, place: TextPlace | None) -> int:
        """Skip a value; returns the start of the next."""
        event = self._events[at]
        if place is not None and not place.found:
            self._note(place, event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(at + 1, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(at + 1, place)
        if isinstance(event, yaml.AliasEvent) and place is not None and place.below:
            self.value(self._anchor(at), place)
        return at + 1

    def _anchor(self, at: int) -> int:
        """The start of the value that an alias stands for."""
        if self._anchored is None:
            self._anchored = defaultdict(list)
            for place, event in enumerate(self._events):
                if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent):
                    self._anchored[event.anchor or ""].append(place)
        starts = self._anchored[str(self._events[at].anchor)]
        return starts[bisect_left(starts, at) - 1]

    def _mapping(self, at: int, place: TextPlace | None) -> int:
        while not isinstance(self._events[at], yaml.MappingEndEvent):
            event = self._events[at]
            inner = None
            if place is not None and place.below and isinstance(event, yaml.ScalarEvent):
                inner = place.below.get(event.value)
            if inner is not None:
                self._note(inner, event)
            at = self.value(self.value(at, None), inner)
        return at + 1

    def _sequence(self, at: int, place: TextPlace | None) -> int:
        index = 0
        while not isinstance(self._events[at], yaml.SequenceEndEvent):
            inner = place.below.get(index) if place is not None and place.below else None
            if inner is not None:
                self._note(inner, self._events[at])
            at = self.value(at, inner)
            index += 1
        return at + 1

    def _note(self, place: TextPlace, event: Any) -> None:
        mark = event.start_mark
        place.found.append((mark.line + 1, mark.column + 1))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The place of a character, by its index."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _note(place: TextPlace | None, offset: int, starts: list[int]) -> None:
    if place is not None:
        line = bisect_right(starts, offset)
        place.found.append((line, offset - starts[line - 1] + 1))


def _key(mark: str) -> str:
    return mark[1:-1] if "\\" not in mark else str(json.loads(mark))

"""Match patterns like Go's regexp: anywhere in the text, in time linear in its length.

The tree becomes an automaton whose states are created while texts are read (a lazy DFA), so no pattern can
cause exponential time, as backtracking does. A state is an ordered list of waiting steps: the match that the
pattern prefers is found as in Go. The start of a match is found by reading backward from its end (as in RE2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Final

from specmux_converters.go.regexp import (
    Character,
    Edge,
    Either,
    Node,
    Repeat,
    Sequence,
    Test,
    UnsupportedPattern,
    parse,
)
from specmux_converters.lazy.dataclasses import dataclass

MOST_STEPS: Final = 20_000
"""Steps of one automaton: counted repetitions are expanded."""
_MOST_STATES: Final = 2_000
"""Cached states; beyond that they are created again."""

_EDGE_OF_TEXT, _NEWLINE, _WORD, _OTHER = "", "\n", "w", "-"
"""Kinds of neighbours of a position: none, a line break, a word character, another."""


class UndecidedMatch(Exception):
    """Why a pattern could not be matched."""


@dataclass(slots=True)
class _Step:
    """One of: read a character, check the position, or try alternatives in order of preference."""

    test: Test | None = None
    edge: str = ""
    ways: tuple[int, ...] = ()


@dataclass(slots=True)
class _State:
    """``matched``: a match ended before the last character."""

    waiting: tuple[int, ...]
    before: str
    is_seeking: bool
    """Whether a match may start later as well."""
    matched: bool = False
    after: dict[str, _State] = field(default_factory=dict)
    ends: bool | None = None
    """Whether a match ends with the text, if known."""

    @property
    def is_dead(self) -> bool:
        return not self.waiting and not self.is_seeking


class Pattern:
    """``text``: as in the schema. Compiled on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    def matches(self, value: str) -> bool:
        """Raises UndecidedMatch if the pattern is unsupported."""
        return self._forward.matches(value)

    def find(self, value: str, start: int = 0) -> tuple[int, int] | None:
        """The first match from ``start``, as by Go's FindStringIndex. Raises UndecidedMatch."""
        end = self._forward.end(value, start)
        return None if end is None else (self._backward.begin(value, start, end), end)

    def find_all(self, value: str) -> Iterator[tuple[int, int]]:
        """Matches that do not overlap; an empty match never follows a match directly. Raises
        UndecidedMatch."""
        at, last = 0, -1
        while at <= len(value):
            found = self.find(value, at)
            if found is None:
                return
            begin, end = found
            if end > begin or begin != last:
                yield found
            at, last = max(end, at + 1 if end == begin else end), end

    @cached_property
    def _tree(self) -> Node:
        try:
            return parse(self.text)
        except (UnsupportedPattern, RecursionError) as error:
            fault = str(error) or "nested too deeply"
            raise UndecidedMatch(f"the pattern {self.text!r} is not understood here: {fault}") from error

    @cached_property
    def _forward(self) -> _Automaton:
        return self._automaton(self._tree)

    @cached_property
    def _backward(self) -> _Automaton:
        return self._automaton(_reversed(self._tree))

    def _automaton(self, tree: Node) -> _Automaton:
        try:
            return _Automaton(tree)
        except (UnsupportedPattern, RecursionError) as error:
            fault = str(error) or "nested too deeply"
            raise UndecidedMatch(f"the pattern {self.text!r} is not understood here: {fault}") from error


_ACCEPT: Final = 0


class _Automaton:
    def __init__(self, tree: Node) -> None:
        self._steps = [_Step()]
        self._first = self._build(tree, _ACCEPT)
        self._states: dict[tuple[tuple[int, ...], str, bool, bool], _State] = {}
        self._starts = {
            kind: _State((self._first,), kind, True) for kind in (_EDGE_OF_TEXT, _NEWLINE, _WORD, _OTHER)
        }

    def matches(self, value: str) -> bool:
        state = self._starts[_EDGE_OF_TEXT]
        for character in value:
            following = state.after.get(character)
            if following is None:
                following = self._follow(state, character)
            if following.matched:
                return True
            if following.is_dead:
                return False
            state = following
        return self._ends(state)

    def end(self, value: str, start: int) -> int | None:
        """The end of the preferred one among the leftmost matches."""
        state = self._starts[_kind(value[start - 1]) if start else _EDGE_OF_TEXT]
        found: int | None = None
        for at in range(start, len(value)):
            following = state.after.get(value[at])
            if following is None:
                following = self._follow(state, value[at])
            if following.matched:
                found = at
            if following.is_dead:
                return found
            state = following
        return len(value) if self._ends(state) else found

    def begin(self, value: str, start: int, end: int) -> int:
        """The start of the longest match that ends there, for a reversed pattern."""
        waiting: tuple[int, ...] = (self._first,)
        found = end
        before = _kind(value[end]) if end < len(value) else _EDGE_OF_TEXT
        for at in range(end, start - 1, -1):
            after = _kind(value[at - 1]) if at else _EDGE_OF_TEXT
            steps = self._closure(waiting, before, after, is_first=False)
            if _ACCEPT in steps:
                found = at
            if at == start:
                break
            character = value[at - 1]
            waiting = tuple(dict.fromkeys(way for step in steps for way in self._ways(step, character)))
            if not waiting:
                break
            before = after
        return found

    def _ends(self, state: _State) -> bool:
        if state.ends is None:
            state.ends = _ACCEPT in self._closure(state.waiting, state.before, _EDGE_OF_TEXT)
        return state.ends

    def _ways(self, index: int, character: str) -> tuple[int, ...]:
        step = self._steps[index]
        return step.ways if step.test is not None and step.test(character) else ()

    def _follow(self, state: _State, character: str) -> _State:
        kind = _kind(character)
        steps = self._closure(state.waiting, state.before, kind)
        matched = bool(steps) and steps[-1] == _ACCEPT
        is_seeking = state.is_seeking and not matched
        ways = [way for step in steps for way in self._ways(step, character)]
        if is_seeking:
            ways.append(self._first)
        waiting = tuple(dict.fromkeys(ways))
        if len(self._states) > _MOST_STATES:
            self._states.clear()
        key = (waiting, kind, is_seeking, matched)
        following = self._states.get(key)
        if following is None:
            following = self._states[key] = _State(waiting, kind, is_seeking, matched)
        if len(state.after) < _MOST_STATES:
            state.after[character] = following
        return following

    def _closure(
        self, ways: tuple[int, ...], before: str, after: str, *, is_first: bool = True
    ) -> tuple[int, ...]:
        """The steps reachable without reading, in order; with ``is_first``, none after a match."""
        waiting, seen = list(reversed(ways)), set()
        found: list[int] = []
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            step = self._steps[index]
            if index == _ACCEPT or step.test is not None:
                found.append(index)
                if index == _ACCEPT and is_first:
                    break
            elif not step.edge or _is_at(step.edge, before, after):
                waiting.extend(reversed(step.ways))
        return tuple(found)

    def _build(self, node: Node, following: int) -> int:
        match node:
            case Character(test):
                return self._add(_Step(test=test, ways=(following,)))
            case Edge(kind):
                return self._add(_Step(edge=kind, ways=(following,)))
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Either(options):
                return self._add(_Step(ways=tuple(self._build(option, following) for option in options)))
            case Repeat():
                return self._repeat(node, following)

    def _repeat(self, node: Repeat, following: int) -> int:
        if node.most is None:
            # An empty iteration of x* is tried after x+, as in Go (golang.org/issue/46123).
            again = self._add(_Step())
            inner = self._build(node.inner, again)
            self._steps[again].ways = self._preferred(node, inner, following)
            if node.least == 0:
                return self._add(_Step(ways=self._preferred(node, inner, following)))
            following = inner
        else:
            end = following
            for _ in range(node.most - node.least):
                inner = self._build(node.inner, following)
                following = self._add(_Step(ways=self._preferred(node, inner, end)))
        for _ in range(node.least - (node.most is None)):
            following = self._build(node.inner, following)
        return following

    @staticmethod
    def _preferred(node: Repeat, again: int, on: int) -> tuple[int, ...]:
        return (on, again) if node.is_lazy else (again, on)

    def _add(self, step: _Step) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise UnsupportedPattern("too many repetitions")
        self._steps.append(step)
        return len(self._steps) - 1


def _kind(character: str) -> str:
    if character == "\n":
        return _NEWLINE
    return _WORD if character == "_" or (character < "\x80" and character.isalnum()) else _OTHER


def _is_at(edge: str, before: str, after: str) -> bool:
    match edge:
        case "^":
            return before == _EDGE_OF_TEXT
        case "$":
            return after == _EDGE_OF_TEXT
        case "(^":
            return before in (_EDGE_OF_TEXT, _NEWLINE)
        case "$)":
            return after in (_EDGE_OF_TEXT, _NEWLINE)
    return ((before == _WORD) != (after == _WORD)) == (edge == "b")


_MIRRORED: Final = {"^": "$", "$": "^", "(^": "$)", "$)": "(^"}


def _reversed(node: Node) -> Node:
    match node:
        case Sequence(parts):
            return Sequence(tuple(map(_reversed, reversed(parts))))
        case Either(options):
            return Either(tuple(map(_reversed, options)))
        case Repeat(inner, least, most):
            return Repeat(_reversed(inner), least, most)
        case Edge(kind):
            return Edge(_MIRRORED.get(kind, kind))
    return node

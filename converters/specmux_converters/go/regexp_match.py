"""Patterns of schemas, matched as Go's regexp does: anywhere in the text, in time linear in its length.

The tree becomes an automaton whose states are made while texts are read (a lazy DFA), so no pattern and no
text can make a match take long, as backtracking would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from specmux_converters.go.regexp import (
    Character,
    Edge,
    Either,
    Node,
    Repeat,
    Sequence,
    Test,
    Unsupported,
    parse,
)

MOST_STEPS: Final = 20_000
"""Of one automaton: counted repetitions are written out."""
_MOST_STATES: Final = 2_000
"""Kept; beyond it they are made anew."""


class Undecided(Exception):
    """Why a pattern could not be matched."""


@dataclass(slots=True)
class _Step:
    """One of: a character is read, the edge of the text is there, or a choice of ways."""

    test: Test | None = None
    needs_end: bool | None = None
    ways: tuple[int, ...] = ()


@dataclass(slots=True)
class _State:
    """Steps that wait for a character. ``ends`` is known for the end of the text."""

    steps: frozenset[int]
    accepts: bool
    ends: bool
    after: dict[str, _State] = field(default_factory=dict)


class Pattern:
    """``text`` is as the schema has it. Compiled when it is first used."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._automaton: _Automaton | None = None
        self._fault: str | None = None

    def matches(self, value: str) -> bool:
        """Raises Undecided where the pattern is not understood."""
        if self._automaton is None and self._fault is None:
            try:
                self._automaton = _Automaton(parse(self.text))
            except (Unsupported, RecursionError) as error:
                self._fault = str(error) or "nested too deeply"
        if self._automaton is None:
            raise Undecided(f"the pattern {self.text!r} is not understood here: {self._fault}")
        return self._automaton.matches(value)


_ACCEPT: Final = 0


class _Automaton:
    def __init__(self, tree: Node) -> None:
        self._steps = [_Step()]
        self._first = self._build(tree, _ACCEPT)
        self._states: dict[frozenset[int], _State] = {}
        self._start = self._state((self._first,), at_start=True)

    def matches(self, value: str) -> bool:
        state = self._start
        for character in value:
            if state.accepts:
                return True
            following = state.after.get(character)
            if following is None:
                following = self._follow(state, character)
            state = following
        return state.accepts or (state.ends if value else self._ends_empty())

    def _ends_empty(self) -> bool:
        return _ACCEPT in self._closure((self._first,), at_start=True, at_end=True)

    def _follow(self, state: _State, character: str) -> _State:
        steps = self._steps
        ways = [
            way
            for step in state.steps
            if (test := steps[step].test) and test(character)
            for way in steps[step].ways
        ]
        if len(self._states) > _MOST_STATES:
            self._states.clear()
        following = self._state((*ways, self._first), at_start=False)
        if len(state.after) < _MOST_STATES:
            state.after[character] = following
        return following

    def _state(self, ways: tuple[int, ...], *, at_start: bool) -> _State:
        steps = self._closure(ways, at_start=at_start, at_end=False)
        found = self._states.get(steps)
        if found is None:
            ends = _ACCEPT in self._closure(ways, at_start=at_start, at_end=True)
            found = _State(steps, _ACCEPT in steps, ends)
            if not at_start:
                self._states[steps] = found
        return found

    def _closure(self, ways: tuple[int, ...], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """The steps that are reached without reading. Those at the end of the text stay, to be told apart."""
        waiting, seen = list(ways), set()
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            step = self._steps[index]
            if step.test is not None:
                continue
            if step.needs_end is None or (at_end if step.needs_end else at_start):
                waiting.extend(step.ways)
        return frozenset(seen)

    def _build(self, node: Node, following: int) -> int:
        match node:
            case Character(test):
                return self._add(_Step(test=test, ways=(following,)))
            case Edge(is_end):
                return self._add(_Step(needs_end=is_end, ways=(following,)))
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
            loop = self._add(_Step())
            self._steps[loop].ways = (self._build(node.inner, loop), following)
            following = loop
        else:
            for _ in range(node.most - node.least):
                inner = self._build(node.inner, following)
                following = self._add(_Step(ways=(inner, following)))
        for _ in range(node.least):
            following = self._build(node.inner, following)
        return following

    def _add(self, step: _Step) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise Unsupported("too many repetitions")
        self._steps.append(step)
        return len(self._steps) - 1

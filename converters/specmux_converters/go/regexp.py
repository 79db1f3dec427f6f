"""Regular expressions of Go (RE2 syntax), read into a tree. Nothing is matched here; see ``patterns``.

What is not read (word boundaries, multi-line mode, scripts of Unicode) raises Unsupported: such a pattern is
told as not checked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Test: TypeAlias = Callable[[str], bool]
"""Whether one character belongs."""


class Unsupported(Exception):
    """Says what."""


@dataclass(frozen=True, slots=True)
class Character:
    test: Test


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    inner: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The beginning or the end of the text."""

    is_end: bool


Node: TypeAlias = Character | Sequence | Either | Repeat | Edge

_COUNT: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z0-9_]+>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
_SIMPLE: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBER: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|([1-7][0-7]{1,2}|0[0-7]{0,2})")
_POSIX: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY: Final = re.compile(r"([pP])(?:([A-Z])|\{(\^?)([A-Za-z_]+)\})")

_DIGITS: Final = frozenset("0123456789")
_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORD: Final = _DIGITS | _LOWER | _UPPER | {"_"}
_SPACE: Final = frozenset("\t\n\f\r ")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_NAMED: Final = {
    "alnum": _DIGITS | _LOWER | _UPPER,
    "alpha": _LOWER | _UPPER,
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset([*map(chr, range(32)), "\x7f"]),
    "digit": _DIGITS,
    "graph": _DIGITS | _LOWER | _UPPER | _PUNCTUATION,
    "lower": _LOWER,
    "print": _DIGITS | _LOWER | _UPPER | _PUNCTUATION | {" "},
    "punct": _PUNCTUATION,
    "space": _SPACE | {"\v"},
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _DIGITS | frozenset("abcdefABCDEF"),
}
_PERL: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}


def parse(pattern: str) -> Node:
    """Raises Unsupported; a pattern that Go would refuse is taken for its like, or raises it, too."""
    reader = _Reader(pattern)
    node = reader.alternatives()
    if not reader.is_done:
        raise Unsupported(f"an unexpected {reader.rest[:1]!r}")
    return node


@dataclass(slots=True)
class _Flags:
    folds: bool = False
    dot_is_all: bool = False


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags = _Flags()

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    def alternatives(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while not self.is_done and self._text[self._at] not in "|)":
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part))
        return Sequence(tuple(parts))

    def _repeated(self, node: Node) -> Node:
        while not self.is_done:
            mark = self._text[self._at]
            if mark in "*+?":
                self._at += 1
                node = Repeat(node, int(mark == "+"), 1 if mark == "?" else None)
            elif (match := _COUNT.match(self._text, self._at)) is not None:
                self._at = match.end()
                least = int(match[1])
                node = Repeat(node, least, (int(match[3]) if match[3] else None) if match[2] else least)
            else:
                break
            self._take("?")  # shortest first: whether it matches is the same
        return node

    def _atom(self) -> Node | None:
        mark = self._text[self._at]
        if mark == "(":
            return self._group()
        self._at += 1
        match mark:
            case "^":
                return Edge(is_end=False)
            case "$":
                return Edge(is_end=True)
            case ".":
                return Character(_any if self._flags.dot_is_all else _no_newline)
            case "[":
                return Character(self._folded(self._class()))
            case "\\":
                return self._escape()
        return Character(self._folded(_one_of(mark)))

    def _group(self) -> Node | None:
        before = _Flags(self._flags.folds, self._flags.dot_is_all)
        match = _GROUP.match(self._text, self._at)
        self._at = match.end() if match else self._at + 1
        if match and match["end"]:
            self._set_flags(match["on"] or "", match["off"] or "")
            if match["end"] == ")":
                return None
        elif not match and self.rest.startswith("?"):
            raise Unsupported(f"the group ({self.rest[:3]}")
        node = self.alternatives()
        if not self._take(")"):
            raise Unsupported("a group that does not end")
        self._flags = before
        return node

    def _set_flags(self, on: str, off: str) -> None:
        if "m" in on:
            raise Unsupported("multi-line mode")
        self._flags = _Flags(
            (self._flags.folds or "i" in on) and "i" not in off,
            (self._flags.dot_is_all or "s" in on) and "s" not in off,
        )

    def _escape(self) -> Node:
        mark = self.rest[:1]
        if mark == "A" or mark == "z":
            self._at += 1
            return Edge(is_end=mark == "z")
        if mark in ("b", "B", "C", ""):
            raise Unsupported(f"\\{mark}")
        if mark == "Q":
            return self._quotation()
        return Character(self._folded(self._escaped_class()))

    def _quotation(self) -> Node:
        end = self._text.find("\\E", self._at)
        text = self._text[self._at + 1 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._text)
        return Sequence(tuple(Character(self._folded(_one_of(character))) for character in text))

    def _escaped_class(self) -> Test:
        """Behind a backslash."""
        mark = self.rest[:1]
        if mark.lower() in _PERL:
            self._at += 1
            return _in(_PERL[mark.lower()], negated=mark.isupper())
        if mark in "pP":
            return self._property()
        return _one_of(self._escaped_character())

    def _escaped_character(self) -> str:
        mark = self.rest[:1]
        if mark in _SIMPLE:
            self._at += 1
            return _SIMPLE[mark]
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            if code > 0x10FFFF:
                raise Unsupported("a character beyond Unicode")
            return chr(code)
        if not mark or mark.isalnum():
            raise Unsupported(f"\\{mark}")
        self._at += 1
        return mark

    def _property(self) -> Test:
        match = _PROPERTY.match(self._text, self._at)
        name = (match[2] or match[4]) if match else ""
        if match is None or len(name) > 2:
            raise Unsupported(f"\\p{{{name}}}")
        self._at = match.end()
        negated = (match[1] == "P") != bool(match[3])
        return lambda character: unicodedata.category(character).startswith(name) != negated

    def _class(self) -> Test:
        """Behind the opening bracket."""
        negated = self._take("^")
        tests: list[Test] = []
        is_first = True
        while is_first or not self._take("]"):
            if self.is_done:
                raise Unsupported("a class that does not end")
            is_first = False
            tests.append(self._class_part())
        return lambda character: any(test(character) for test in tests) != negated

    def _class_part(self) -> Test:
        posix = _POSIX.match(self._text, self._at)
        if posix is not None and posix[2] in _NAMED:
            self._at = posix.end()
            return _in(_NAMED[posix[2]], negated=bool(posix[1]))
        if self.rest[:1] == "\\" and self.rest[1:2].lower() in (*_PERL, "p"):
            self._at += 1
            return self._escaped_class()
        low = self._class_character()
        if self.rest[:1] != "-" or self.rest[1:2] in ("]", ""):
            return _one_of(low)
        self._at += 1
        high = self._class_character()
        return lambda character: low <= character <= high

    def _class_character(self) -> str:
        if self._take("\\"):
            return self._escaped_character()
        self._at += 1
        return self._text[self._at - 1]

    def _folded(self, test: Test) -> Test:
        if not self._flags.folds:
            return test
        return lambda character: test(character) or test(character.lower()) or test(character.upper())

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False


def _any(_: str) -> bool:
    return True


def _no_newline(character: str) -> bool:
    return character != "\n"


def _one_of(wanted: str) -> Test:
    return lambda character: character == wanted


def _in(characters: frozenset[str], *, negated: bool) -> Test:
    return lambda character: (character in characters) != negated

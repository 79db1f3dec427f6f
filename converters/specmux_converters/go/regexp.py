"""Parse Go's regular expressions (RE2 syntax) into a tree; ``regexp_match`` matches them.

What is too large raises UnsupportedPattern, what Go refuses Invalid with Go's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from specmux_converters.go.case_folding import alike
from specmux_converters.go.unicode_classes import unicode_class
from specmux_converters.lazy.dataclasses import dataclass

Test: TypeAlias = Callable[[str], bool]
"""Whether a character belongs to a class."""


class UnsupportedPattern(Exception):
    """Says what."""


class Invalid(UnsupportedPattern):
    """Go refuses the pattern, with this text."""

    def __init__(self, fault: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {fault}: `{part}`")


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
    is_lazy: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A position between characters: ``^`` and ``$`` of the text, ``(^`` and ``$)`` of a line, ``b`` at a
    word boundary, ``B`` elsewhere."""

    kind: str


Node: TypeAlias = Character | Sequence | Either | Repeat | Edge

MOST_REPEATED: Final = 1000
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z0-9_]+>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
_NAME: Final = re.compile(r"\(\?P?<[^>]*>")
_FLAGS: Final = re.compile(r"\(\?[imsU-]*[\s\S]?")
_SIMPLE: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBER: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|([1-7][0-7]{1,2}|0[0-7]{0,2})")
_POSIX: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY: Final = re.compile(r"([pP])(?:\{(\^?)([^}]*)\}|([^{]))")

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
    """Raises Invalid if Go refuses the pattern."""
    try:
        reader = _Reader(pattern)
        node = reader.alternatives()
        if not reader.is_done:
            raise Invalid("unexpected )", pattern)
    except RecursionError:
        raise Invalid("expression nests too deeply", pattern) from None
    return node


def pattern_fault(pattern: str) -> str | None:
    """Go's error for ``pattern``; None if it compiles."""
    try:
        parse(pattern)
    except Invalid as fault:
        return str(fault)
    return None


@dataclass(slots=True)
class _Flags:
    folds: bool = False
    dot_is_all: bool = False
    is_by_line: bool = False
    is_lazy: bool = False


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags = _Flags()
        self._last_posix_end = pattern.rfind(":]")

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def alternatives(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while not self.is_done and self._text[self._at] not in "|)":
            begun = self._at
            if self._text[self._at] in "*+?" or _COUNT.match(self._text, self._at):
                self._want_no_repeat(begun)
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part))
        return Sequence(tuple(parts))

    def _want_no_repeat(self, begun: int) -> None:
        self._counted(Sequence(()))
        raise Invalid("missing argument to repetition operator", self._text[begun : self._at])

    def _repeated(self, node: Node) -> Node:
        begun = self._at
        repeated = self._counted(node)
        if repeated is None:
            return node
        if self._counted(repeated) is not None:
            raise Invalid("invalid nested repetition operator", self._text[begun : self._at])
        if _count(repeated) > MOST_REPEATED:
            raise Invalid("invalid repeat count", self._text[begun : self._at])
        return repeated

    def _counted(self, node: Node) -> Repeat | None:
        """None if there is no repetition."""
        mark = self._peek()
        begun = self._at
        least, most = int(mark == "+"), 1 if mark == "?" else None
        if mark and mark in "*+?":
            self._at += 1
        elif (match := _COUNT.match(self._text, self._at)) is not None:
            self._at = match.end()
            if max(len(match[1]), len(match[3] or "")) > len(str(MOST_REPEATED)):
                raise Invalid("invalid repeat count", match.group())
            least = int(match[1])
            most = (int(match[3]) if match[3] else None) if match[2] else least
            if max(least, most or 0) > MOST_REPEATED or (most is not None and most < least):
                raise Invalid("invalid repeat count", self._text[begun : self._at])
        else:
            return None
        return Repeat(node, least, most, self._take("?") != self._flags.is_lazy)

    def _atom(self) -> Node | None:
        mark = self._text[self._at]
        if mark == "(":
            return self._group()
        self._at += 1
        match mark:
            case "^":
                return Edge("(^" if self._flags.is_by_line else "^")
            case "$":
                return Edge("$)" if self._flags.is_by_line else "$")
            case ".":
                return Character(_any if self._flags.dot_is_all else _no_newline)
            case "[":
                return Character(self._class())
            case "\\":
                return self._escape()
        return Character(self._folded(_one_of(mark)))

    def _group(self) -> Node | None:
        before = replace(self._flags)
        match = _GROUP.match(self._text, self._at)
        if match is None and self._peek(2) == "(?":
            raise self._bad_group()
        self._at = match.end() if match else self._at + 1
        if match and match["end"]:
            self._set_flags(match["on"] or "", match["off"] or "")
            if match["end"] == ")":
                return None
        node = self.alternatives()
        if not self._take(")"):
            raise Invalid("missing closing )", self._text)
        self._flags = before
        return node

    def _bad_group(self) -> Invalid:
        if self._peek(4).startswith(("(?P<", "(?<")):
            name = _NAME.match(self._text, self._at)
            return Invalid("invalid named capture", name.group() if name else self._text[self._at :])
        flags = _FLAGS.match(self._text, self._at)
        return Invalid(
            "invalid or unsupported Perl syntax", flags.group() if flags else self._text[self._at :]
        )

    def _set_flags(self, on: str, off: str) -> None:
        before = self._flags
        values = (before.folds, before.dot_is_all, before.is_by_line, before.is_lazy)
        self._flags = _Flags(
            *((was or flag in on) and flag not in off for was, flag in zip(values, "ismU", strict=True))
        )

    def _escape(self) -> Node | None:
        mark = self._peek()
        if mark and mark in "AzbB":
            self._at += 1
            return Edge({"A": "^", "z": "$"}.get(mark, mark))
        if mark == "Q":
            return self._quotation()
        return Character(self._escaped_class())

    def _quotation(self) -> Node | None:
        end = self._text.find("\\E", self._at)
        text = self._text[self._at + 1 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._text)
        parts = [Character(self._folded(_one_of(character))) for character in text]
        return Sequence(tuple(parts)) if parts else None

    def _escaped_class(self) -> Test:
        """After a backslash."""
        mark = self._peek()
        if mark.lower() in _PERL:
            self._at += 1
            return self._folded(_in(_PERL[mark.lower()]), negated=mark.isupper())
        if mark and mark in "pP":
            return self._property()
        return self._folded(_one_of(self._escaped_character()))

    def _escaped_character(self) -> str:
        mark = self._peek()
        if mark in _SIMPLE:
            self._at += 1
            return _SIMPLE[mark]
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            if code > 0x10FFFF:
                raise Invalid("invalid escape sequence", f"\\{match.group()}")
            return chr(code)
        if not mark:
            raise Invalid("trailing backslash at end of expression", "")
        if mark.isalnum() or mark > "\x7f":
            raise Invalid("invalid escape sequence", f"\\{mark}")
        self._at += 1
        return mark

    def _property(self) -> Test:
        match = _PROPERTY.match(self._text, self._at)
        test = unicode_class(match[3] or match[4] or "") if match else None
        if match is None or test is None:
            part = match.group() if match else self._text[self._at :]
            raise Invalid("invalid character class range", f"\\{part}")
        self._at = match.end()
        return self._folded(test, negated=(match[1] == "P") != bool(match[2]))

    def _class(self) -> Test:
        """After the opening bracket."""
        begun = self._at - 1
        negated = self._take("^")
        tests: list[Test] = []
        is_first = True
        while is_first or not self._take("]"):
            if self.is_done:
                raise Invalid("missing closing ]", self._text[begun:])
            is_first = False
            tests.append(self._class_part(begun))
        return lambda character: any(test(character) for test in tests) != negated

    def _class_part(self, begun: int) -> Test:
        if self._peek(2) == "[:" and self._last_posix_end >= self._at + 2:
            posix = _POSIX.match(self._text, self._at)
            if posix is None or posix[2] not in _NAMED:
                end = self._text.find(":]", self._at + 2) + 2
                raise Invalid("invalid character class range", self._text[self._at : end])
            self._at = posix.end()
            return self._folded(_in(_NAMED[posix[2]]), negated=bool(posix[1]))
        if self._peek() == "\\" and self._peek(2)[1:].lower() in (*_PERL, "p"):
            self._at += 1
            return self._escaped_class()
        range_begun = self._at
        low = self._class_character(begun)
        if self._peek() != "-" or self._peek(2)[1:] == "]":
            return self._folded(_one_of(low))
        self._at += 1
        high = self._class_character(begun)
        if high < low:
            raise Invalid("invalid character class range", self._text[range_begun : self._at])
        return self._folded(lambda character: low <= character <= high)

    def _class_character(self, begun: int) -> str:
        if self.is_done:
            raise Invalid("missing closing ]", self._text[begun:])
        if self._take("\\"):
            return self._escaped_character()
        self._at += 1
        return self._text[self._at - 1]

    def _folded(self, test: Test, *, negated: bool = False) -> Test:
        """The test with case variants added before negation, as in Go."""
        if self._flags.folds:
            return lambda character: (test(character) or any(map(test, alike(character)))) != negated
        return (lambda character: not test(character)) if negated else test

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False


def _count(node: Node) -> int:
    """Number of copies of a character that nested counts expand to."""
    match node:
        case Repeat(inner, least, most):
            return max(least, most or 0, 1) * _count(inner)
        case Sequence(parts) | Either(parts):
            return max(map(_count, parts), default=1)
    return 1


def _any(_: str) -> bool:
    return True


def _no_newline(character: str) -> bool:
    return character != "\n"


def _one_of(wanted: str) -> Test:
    return lambda character: character == wanted


def _in(characters: frozenset[str]) -> Test:
    return lambda character: character in characters

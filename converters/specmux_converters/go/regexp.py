"""Patterns of Go's regexp: refused in its words, and matched by RE2, in time linear in the text.

The two have one syntax. They differ in a few escapes, texts of errors, names that come twice, and in the
Unicode that they know: classes are written out by Go's tables. RE2 works on bytes, and finds what matches
nothing (``\\B``) within a character as well, which is left out here. A pattern for which it takes more than
8 MiB is not understood: few are, such as ``\\pL{1,1000}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from specmux_converters.go.unicode_classes import Ranges, complement, unicode_ranges, with_other_cases

MOST_REPEATED: Final = 1000
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z0-9_]+>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
_NAME: Final = re.compile(r"\(\?P?<[^>]*>")
_FLAGS: Final = re.compile(r"\(\?[imsU-]*[\s\S]?")
_SIMPLE: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBER: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|([1-7][0-7]{1,2}|0[0-7]{0,2})")
_POSIX: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY: Final = re.compile(r"([pP])(?:\{(\^?)([^}]*)\}|([^{]))")
_NAMED: Final = frozenset(
    {
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "word", "xdigit",
    }
)  # fmt: skip
_PERL: Final = "dws"


class Invalid(Exception):
    """Go refuses the pattern, with this text."""

    def __init__(self, fault: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {fault}: `{part}`")


def re2_text(pattern: str) -> str:
    """The pattern with Unicode classes written out, and without names. Raises Invalid if Go refuses it."""
    reader = _Reader(pattern)
    reader.read()
    written: list[str] = []
    at = 0
    for begin, end, text in reader.rewritten:
        written += (pattern[at:begin], text)
        at = end
    return "".join((*written, pattern[at:]))


def pattern_fault(pattern: str) -> str | None:
    """Go's error for ``pattern``; None if it compiles."""
    try:
        _Reader(pattern).read()
    except Invalid as fault:
        return str(fault)
    return None


class _Reader:
    """Reads a pattern. A method that reads a part returns how many copies of a character its counts make at
    most, None for nothing that can be repeated."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._folds = False
        """Whether case is ignored."""
        self._last_posix_end = pattern.rfind(":]")
        self.rewritten: list[tuple[int, int, str]] = []
        """Beginning and end of what RE2 reads otherwise, and what it reads there."""

    def read(self) -> None:
        """Raises Invalid if Go refuses the pattern."""
        try:
            self._alternatives()
        except RecursionError:
            raise Invalid("expression nests too deeply", self._text) from None
        if not self.is_done:
            raise Invalid("unexpected )", self._text)

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _alternatives(self) -> int:
        copies = self._sequence()
        while self._take("|"):
            copies = max(copies, self._sequence())
        return copies

    def _sequence(self) -> int:
        most = 1
        while not self.is_done and self._text[self._at] not in "|)":
            begun = self._at
            if self._text[self._at] in "*+?" or _COUNT.match(self._text, self._at):
                self._want_no_repeat(begun)
            copies = self._atom()
            if copies is not None:
                most = max(most, self._repeat(copies))
        return most

    def _want_no_repeat(self, begun: int) -> None:
        self._count(1)
        raise Invalid("missing argument to repetition operator", self._text[begun : self._at])

    def _repeat(self, copies: int) -> int:
        begun = self._at
        repeated = self._count(copies)
        if repeated is None:
            return copies
        if self._count(repeated) is not None:
            raise Invalid("invalid nested repetition operator", self._text[begun : self._at])
        if repeated > MOST_REPEATED:
            raise Invalid("invalid repeat count", self._text[begun : self._at])
        return repeated

    def _count(self, copies: int) -> int | None:
        """None if there is no repetition."""
        mark = self._peek()
        begun = self._at
        least, most = 1, None
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
        self._take("?")
        return copies * max(least, most or 0, 1)

    def _atom(self) -> int | None:
        mark = self._text[self._at]
        if mark == "(":
            return self._group()
        self._at += 1
        if mark == "[":
            self._class()
        elif mark == "\\":
            return self._escape()
        return 1

    def _group(self) -> int | None:
        folds = self._folds
        match = _GROUP.match(self._text, self._at)
        if match is None and self._peek(2) == "(?":
            raise self._bad_group()
        if match and not match["end"]:  # RE2 refuses a name that comes twice
            self.rewritten.append((self._at, match.end(), "("))
        self._at = match.end() if match else self._at + 1
        if match and match["end"]:
            self._folds = (folds or "i" in (match["on"] or "")) and "i" not in (match["off"] or "")
            if match["end"] == ")":
                return None
        copies = self._alternatives()
        if not self._take(")"):
            raise Invalid("missing closing )", self._text)
        self._folds = folds
        return copies

    def _bad_group(self) -> Invalid:
        if self._peek(4).startswith(("(?P<", "(?<")):
            name = _NAME.match(self._text, self._at)
            return Invalid("invalid named capture", name.group() if name else self._text[self._at :])
        flags = _FLAGS.match(self._text, self._at)
        return Invalid(
            "invalid or unsupported Perl syntax", flags.group() if flags else self._text[self._at :]
        )

    def _escape(self) -> int | None:
        mark = self._peek()
        if mark and mark in "AzbB":
            self._at += 1
        elif mark == "Q":
            return self._quotation()
        elif not self._take_class(is_inside=False):
            self._escaped_character()
        return 1

    def _quotation(self) -> int | None:
        end = self._text.find("\\E", self._at)
        is_empty = self._at + 1 == (end if end >= 0 else len(self._text))
        self._at = end + 2 if end >= 0 else len(self._text)
        return None if is_empty else 1

    def _take_class(self, *, is_inside: bool) -> bool:
        """Read a class behind a backslash, if there is one."""
        mark = self._peek()
        if mark and mark.lower() in _PERL:
            self._at += 1
            return True
        if mark and mark in "pP":
            self._property(is_inside=is_inside)
            return True
        return False

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

    def _property(self, *, is_inside: bool) -> None:
        match = _PROPERTY.match(self._text, self._at)
        ranges = unicode_ranges(match[3] or match[4] or "") if match else None
        if match is None or ranges is None:
            part = match.group() if match else self._text[self._at :]
            raise Invalid("invalid character class range", f"\\{part}")
        is_negated = (match[1] == "P") != bool(match[2])
        if is_inside and is_negated:
            # Go folds a class before it is negated. What is left then is folded already.
            written = _write(complement(with_other_cases(ranges) if self._folds else ranges))
        else:
            written = _write(ranges) if is_inside else f"[{'^' * is_negated}{_write(ranges)}]"
        self.rewritten.append((self._at - 1, match.end(), written))
        self._at = match.end()

    def _class(self) -> None:
        """After the opening bracket."""
        begun = self._at - 1
        self._take("^")
        is_first = True
        while is_first or not self._take("]"):
            if self.is_done:
                raise Invalid("missing closing ]", self._text[begun:])
            is_first = False
            self._class_part(begun)

    def _class_part(self, begun: int) -> None:
        if self._peek(2) == "[:" and self._last_posix_end >= self._at + 2:
            posix = _POSIX.match(self._text, self._at)
            if posix is None or posix[2] not in _NAMED:
                end = self._text.find(":]", self._at + 2) + 2
                raise Invalid("invalid character class range", self._text[self._at : end])
            self._at = posix.end()
            return
        if self._peek() == "\\" and self._peek(2)[1:].lower() in (*_PERL, "p"):
            self._at += 1
            self._take_class(is_inside=True)
            return
        range_begun = self._at
        low = self._class_character(begun)
        if self._peek() != "-" or self._peek(2)[1:] == "]":
            return
        self._at += 1
        if self._class_character(begun) < low:
            raise Invalid("invalid character class range", self._text[range_begun : self._at])

    def _class_character(self, begun: int) -> str:
        if self.is_done:
            raise Invalid("missing closing ]", self._text[begun:])
        if self._take("\\"):
            return self._escaped_character()
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False


def _write(ranges: Ranges) -> str:
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)


class UndecidedMatch(Exception):
    """A pattern could not be matched; the message says why."""


class Pattern:
    """``text``: as in the schema. Compiled on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    def matches(self, value: str) -> bool:
        """Raises UndecidedMatch if the pattern is unsupported."""
        data = _encode(value)
        found = self._compiled.search(data)
        return found is not None and (_is_between(data, found.start()) or any(self._spans(data)))

    def find(self, value: str) -> tuple[int, int] | None:
        """The first match, as by Go's FindStringIndex. Raises UndecidedMatch."""
        return next(self.find_all(value), None)

    def find_all(self, value: str) -> Iterator[tuple[int, int]]:
        """Matches that do not overlap; an empty match never follows a match directly. Raises
        UndecidedMatch."""
        data, passed, characters = _encode(value), 0, 0
        last = -1
        for begin, end in self._spans(data):
            if end > begin or begin != last:
                first = characters + len(data[passed:begin].decode())
                passed, characters = end, first + len(data[begin:end].decode())
                yield first, characters
            last = end

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """The matches, in bytes."""
        for found in self._compiled.finditer(data):
            begin, end = found.span()
            if _is_between(data, begin):
                yield begin, end

    @cached_property
    def _compiled(self) -> Any:
        import re2  # takes 5 ms, which most commands do not need

        options = re2.Options()
        options.log_errors, options.never_capture = False, True
        try:
            return re2.compile(re2_text(self.text), options)
        except (Invalid, re2.error) as error:
            raise UndecidedMatch(f"the pattern {self.text!r} is not understood here: {error}") from error


def _is_between(data: bytes, at: int) -> bool:
    """Whether a character of UTF-8 begins or the text ends there."""
    return at == len(data) or data[at] & 0xC0 != 0x80


def _encode(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()

"""Whether a pattern is one that Go's regexp accepts (RE2 syntax with Perl's classes).

An apiserver compiles the patterns of a schema: one that does not compile makes it not structural. Python's
``re`` has another syntax (lookaround and back-references more; ``\\z``, ``\\pL`` and ``[[:alpha:]]`` less).
Here the pattern is read by the rules of Go's regexp/syntax, and nothing is ever matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from specmux_converters.go.unicode_names import is_unicode_class

REPEAT_MAX: Final = 1000
"""The most copies that counted repetitions may ask for, nested ones multiplied."""

_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z0-9_]+>|[imsU]*(?:-[imsU]+)?[:)])")
_COUNT: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_ESCAPE: Final = re.compile(
    r"\\(?:[1-7][0-7]{1,2}|0[0-7]{0,2}|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|[afnrtv]|[\x00-/:-@\[-`{-\x7f])"
)
_PERL_CLASS: Final = re.compile(r"\\(?:[dDsSwW]|[pP](?:[CLMNPSZ]|\{\^?(?P<name>[A-Za-z_ -]+)\}))")
_ASSERTION: Final = re.compile(r"\\[AbBz]")
_POSIX_CLASS: Final = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)
_CHARACTERS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def pattern_fault(pattern: str) -> str | None:
    """Why Go would not compile ``pattern``; None where it would."""
    try:
        _Reader(pattern).read()
    except ValueError as fault:
        return str(fault)
    return None


@dataclass(slots=True)
class _Group:
    """An open parenthesis: the copies that what it holds asks for, and those of the atom read last."""

    copies: int = 1
    last: int | None = None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._groups = [_Group()]
        self._last_posix_end = pattern.rfind(":]")
        self._after_repeat = False

    def read(self) -> None:
        while self._at < len(self._text):
            character = self._text[self._at]
            repeated = False
            if character == "(":
                self._open()
            elif character == ")":
                self._close()
            elif character == "|":
                self._at += 1
                self._groups[-1].last = None
            elif character == "[":
                self._class()
                self._atom()
            elif character == "\\":
                self._backslash()
            elif character in "*+?" or (character == "{" and _COUNT.match(self._text, self._at)):
                self._repeat(character)
                repeated = True
            else:
                self._at += 1
                self._atom()
            self._after_repeat = repeated
        if len(self._groups) > 1:
            raise ValueError("a parenthesis is not closed")

    def _atom(self, copies: int = 1) -> None:
        self._groups[-1].last = copies
        self._groups[-1].copies = max(self._groups[-1].copies, copies)

    def _open(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._at += 1
            self._groups.append(_Group())
            return
        match = _GROUP.match(self._text, self._at)
        if match is None:
            raise ValueError("a group of a kind that Go does not know (lookaround?)")
        self._at = match.end()
        if not match[0].endswith(")"):
            self._groups.append(_Group())

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise ValueError("a parenthesis was not opened")
        self._at += 1
        self._atom(self._groups.pop().copies)

    def _repeat(self, character: str) -> None:
        if self._groups[-1].last is None:
            raise ValueError("nothing to repeat")
        if self._after_repeat:
            raise ValueError("a repetition of a repetition")
        count = _COUNT.match(self._text, self._at) if character == "{" else None
        self._at = count.end() if count else self._at + 1
        if self._text.startswith("?", self._at):
            self._at += 1
        if count is not None:
            self._atom(self._copies(count) * self._groups[-1].last)
            if self._groups[-1].copies > REPEAT_MAX:
                raise ValueError(f"more than {REPEAT_MAX} repetitions")

    def _copies(self, count: re.Match[str]) -> int:
        if max(len(count[1]), len(count[3] or "")) > len(str(REPEAT_MAX)) * 2:
            raise ValueError(f"more than {REPEAT_MAX} repetitions")
        least = int(count[1])
        most = int(count[3]) if count[3] else least
        if most < least:
            raise ValueError("a repetition whose bounds are reversed")
        return max(most, 1)

    def _backslash(self) -> None:
        if self._text.startswith("\\Q", self._at):
            end = self._text.find("\\E", self._at + 2)
            literal = self._text[self._at + 2 : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._text)
            if literal:
                self._atom()
            return
        match = _ASSERTION.match(self._text, self._at) or self._perl_class()
        self._at = match.end() if match else self._escape()
        self._atom()

    def _escape(self) -> int:
        """Where the escape of one character ends."""
        match = _ESCAPE.match(self._text, self._at)
        if match is None:
            raise ValueError("an escape that Go does not know (a back-reference?)")
        if match[0].startswith("\\x{") and int(match[0][3:-1], 16) > 0x10FFFF:
            raise ValueError("an escape beyond Unicode")
        return match.end()

    def _class(self) -> None:
        self._at += 2 if self._text.startswith("[^", self._at) else 1
        start = self._at
        while not self._text.startswith("]", self._at) or self._at == start:
            if self._text.startswith("[:", self._at) and self._last_posix_end >= self._at + 2:
                match = _POSIX_CLASS.match(self._text, self._at)
                if match is None:
                    raise ValueError("a character class that does not exist")
            else:
                match = self._perl_class()
            if match is not None:
                self._at = match.end()
            else:
                self._range()
        self._at += 1

    def _perl_class(self) -> re.Match[str] | None:
        match = _PERL_CLASS.match(self._text, self._at)
        if match is not None and match["name"] is not None and not is_unicode_class(match["name"]):
            raise ValueError("a class of characters that Unicode does not have")
        return match

    def _range(self) -> None:
        low = self._character()
        after = self._text[self._at + 1 : self._at + 2]
        if self._text.startswith("-", self._at) and after not in ("", "]"):
            self._at += 1
            if self._character() < low:
                raise ValueError("a range of characters that is reversed")

    def _character(self) -> int:
        """The code point of the class member here, stepped over."""
        if self._at >= len(self._text):
            raise ValueError("a bracket is not closed")
        start = self._at
        if self._text[start] != "\\":
            self._at += 1
            return ord(self._text[start])
        self._at = self._escape()
        body = self._text[start + 1 : self._at]
        if body[0] == "x":
            return int(body[1:].strip("{}"), 16)
        if body[0].isdigit():
            return int(body, 8)
        return _CHARACTERS.get(body, ord(body))

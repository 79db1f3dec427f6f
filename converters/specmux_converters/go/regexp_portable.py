"""Write Go's patterns (RE2) in syntax that ECMA-262, Python and Rust read with the same meaning.

Classes are expanded to RE2's ASCII meaning, unneeded escapes are removed (ECMA-262's ``u`` refuses them), and
characters that another dialect reads as syntax are escaped. ``(?i)`` becomes classes of equivalent letters.
Returns None for a pattern that cannot be written like this.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from specmux_converters.go.unicode_classes import alike

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\t ",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\t\n\v\f\r ",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN: Final = re.compile(
    r"\\x\{(?P<wide>[0-9A-Fa-f]{1,6})\}|\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<perl>[dDwWsS])"
    r"|\\(?P<control>[afnrtv])|\\(?P<bound>[bB])|\\(?P<start>A)|\\(?P<end>z)|\\(?P<escaped>[^0-9A-Za-z])"
    r"|(?P<unknown>\\.?)|(?P<flag>\(\?i\))|(?P<group>\((?:\?:)?(?!\?))|(?P<other>\(\?)"
    r"|(?P<count>\{[0-9]+(?:,[0-9]*)?\})|(?P<class>\[)|(?P<syntax>[)|*+?.^$])|(?P<literal>.)",
    re.DOTALL,
)
_MEMBER: Final = re.compile(
    r"\[:(?P<posix>[a-z]+):\]|\\x\{(?P<wide>[0-9A-Fa-f]{1,6})\}|\\x(?P<hex>[0-9A-Fa-f]{2})|\\(?P<perl>[dws])"
    r"|\\(?P<control>[afnrtv])|\\(?P<escaped>[^0-9A-Za-z])|(?P<unknown>\\.?|\[:)|(?P<literal>.)",
    re.DOTALL,
)
_CONTROLS: Final = {"a": r"\x07", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\v"}
_SYNTAX: Final = frozenset("\\^$.*+?()[]{}|/")
_CLASS_SYNTAX: Final = frozenset("\\]^[-")


class _Unportable(Exception):
    pass


@lru_cache(maxsize=4096)
def portable(pattern: str) -> str | None:
    """A pattern that matches the same strings in every dialect, except that Python's ``$`` also matches
    before a final newline."""
    try:
        written = _Writer(pattern).write()
        re.compile(written)
    except (_Unportable, re.error, OverflowError, RecursionError):
        return None
    return written


class _Writer:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._folds = [False]
        """Whether case is ignored, for each open group."""

    def write(self) -> str:
        parts = []
        while self._at < len(self._text):
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                raise _Unportable
            self._at = match.end()
            parts.append(self._translate_token(match))
        return "".join(parts)

    def _translate_token(self, match: re.Match[str]) -> str:
        kind, text = match.lastgroup, match[match.lastgroup or 0]
        match kind:
            case "wide" | "hex":
                return self._character(_code(text))
            case "perl":
                return f"[{'^' if text.isupper() else ''}{_CLASSES[text.lower()]}]"
            case "control":
                return _CONTROLS[text]
            case "bound":
                return f"\\{text}"
            case "start" | "end":
                return "^" if kind == "start" else "$"
            case "escaped" | "literal":
                return self._character(text)
            case "flag":
                self._folds[-1] = True
                return ""
            case "class":
                return self._class()
            case "group":
                self._folds.append(self._folds[-1])
                return text
            case "count" | "syntax":
                if text == ")" and len(self._folds) > 1:
                    self._folds.pop()
                return text
            case _:
                raise _Unportable

    def _character(self, character: str) -> str:
        if self._folds[-1] and character.isalpha():
            return f"[{_both(character)}]"
        return f"\\{character}" if character in _SYNTAX - {"/"} else character

    def _class(self) -> str:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        members: list[str] = []
        while not members or not self._text.startswith("]", self._at):
            members.append(self._member())
        self._at += 1
        return f"[{'^' * negated}{''.join(dict.fromkeys(members))}]"

    def _member(self) -> str:
        """A character, range or class."""
        match = _MEMBER.match(self._text, self._at)
        if match is None or match.lastgroup == "unknown":
            raise _Unportable
        self._at = match.end()
        text = match[match.lastgroup or 0]
        if match.lastgroup == "posix":
            if text not in _POSIX:
                raise _Unportable
            return _POSIX[text]
        if match.lastgroup == "perl":
            return _CLASSES[text]
        if match.lastgroup == "control":
            return _CONTROLS[text]
        first = _code(text) if match.lastgroup in ("wide", "hex") else text
        if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
            return self._range(first)
        return _both(first) if self._folds[-1] and first.isalpha() else _in_class(first)

    def _range(self, first: str) -> str:
        match = _MEMBER.match(self._text, self._at + 1)
        if match is None or match.lastgroup not in ("wide", "hex", "escaped", "literal"):
            raise _Unportable
        self._at = match.end()
        last = match[match.lastgroup]
        last = _code(last) if match.lastgroup in ("wide", "hex") else last
        written = f"{_in_class(first)}-{_in_class(last)}"
        if not self._folds[-1]:
            return written
        if not written.isascii():
            raise _Unportable
        if (first.islower() and last.islower()) or (first.isupper() and last.isupper()):
            low, high = first.lower(), last.lower()
            more = "".join(alike(letter)[-1] for letter in "ks" if low <= letter <= high)
            return f"{low}-{high}{low.upper()}-{high.upper()}{more}"
        if not (first.isdigit() and last.isdigit()):
            raise _Unportable
        return written


def _code(digits: str) -> str:
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise _Unportable
    return chr(code)


def _in_class(character: str) -> str:
    return f"\\{character}" if character in _CLASS_SYNTAX else character


def _both(letter: str) -> str:
    """The letter in both cases, with the third "s" and "k". Beyond ASCII, dialects differ."""
    if not letter.isascii():
        raise _Unportable
    return "".join(alike(letter))

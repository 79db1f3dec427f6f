"""Report why a text is not JSON, in the words of Go's encoding/json (its scanner.go).

Called only after a parser refused the text, since it works character by character.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.patterns import pattern

_CUT_SHORT: Final = "unexpected end of JSON input"
_MOST_DEPTH: Final = 10_000
"""scanner.go: maxNestingDepth."""

_SPACE: Final = pattern(rb"[ \t\r\n]*")
_STRING: Final = pattern(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = pattern(rb"[0-9]*")
_ESCAPES: Final = b'bfnrt\\/"'
_HEX: Final = b"0123456789abcdefABCDEF"
_ENDS: Final = {b"{": b"}", b"[": b"]"}
_WORDS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}


class _SyntaxRefusal(Exception):
    """``offset``: number of bytes read."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.text = text
        self.offset = offset


def syntax_error(data: bytes) -> tuple[str, int] | None:
    """The error and its byte offset; None for valid JSON."""
    scanner = _Scanner(data)
    try:
        scanner.run()
    except _SyntaxRefusal as refused:
        return refused.text, refused.offset
    return None


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def run(self) -> None:
        ends: list[bytes] = []
        is_begun = False  # right behind the bracket that opens a container, which may be empty
        while True:
            mark = self._peek_after_space()
            if not (is_begun and mark == ends[-1]):
                if ends and ends[-1] == b"}":
                    mark = self._key(mark)
                if mark in _ENDS:
                    if len(ends) == _MOST_DEPTH:
                        self._refuse("exceeded max depth")
                    self._at += 1
                    ends.append(_ENDS[mark])
                    is_begun = True
                    continue
                self._scalar(mark)
            while ends and (mark := self._peek_after_space()) == ends[-1]:
                self._at += 1
                ends.pop()
            if not ends:
                break
            if mark != b",":
                self._refuse("after object key:value pair" if ends[-1] == b"}" else "after array element")
            self._at += 1
            is_begun = False
        self._space()
        if self._at < len(self._data):
            self._refuse("after top-level value")

    def _key(self, mark: bytes) -> bytes:
        """Read a key; what its value begins with."""
        if mark != b'"':
            self._refuse("looking for beginning of object key string")
        self._string()
        if self._peek_after_space() != b":":
            self._refuse("after object key")
        self._at += 1
        return self._peek_after_space()

    def _scalar(self, mark: bytes) -> None:
        if mark == b'"':
            self._string()
        elif mark in _WORDS:
            self._word(_WORDS[mark])
        elif mark == b"-" or mark.isdigit():
            self._number(mark)
        else:
            self._refuse("looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while True:
            self._at = _end(_STRING, self._data, self._at)
            mark = self._peek()
            if mark == b'"':
                self._at += 1
                return
            if mark != b"\\":
                self._refuse("in string literal")
            self._at += 1
            self._escape(self._peek())

    def _escape(self, mark: bytes) -> None:
        if mark != b"u":
            if mark not in _ESCAPES:
                self._refuse("in string escape code")
            self._at += 1
            return
        for _ in range(4):
            self._at += 1
            if self._peek() not in _HEX:
                self._refuse("in \\u hexadecimal character escape")
        self._at += 1

    def _word(self, word: bytes) -> None:
        for expected in word[1:]:
            self._at += 1
            if self._peek()[0] != expected:
                self._refuse(f"in literal {word.decode()} (expecting '{chr(expected)}')")
        self._at += 1

    def _number(self, mark: bytes) -> None:
        if mark == b"-":
            self._at += 1
            if not self._peek().isdigit():
                self._refuse("in numeric literal")
        self._at = self._at + 1 if self._peek() == b"0" else _end(_DIGITS, self._data, self._at)
        if self._rest(1) == b".":
            self._digits("after decimal point in numeric literal")
        if self._rest(1) in (b"e", b"E"):
            if self._rest(2)[1:] in (b"+", b"-"):
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, place: str) -> None:
        self._at += 1
        if not self._peek().isdigit():
            self._refuse(place)
        self._at = _end(_DIGITS, self._data, self._at)

    def _space(self) -> None:
        self._at = _end(_SPACE, self._data, self._at)

    def _rest(self, count: int) -> bytes:
        return self._data[self._at : self._at + count]

    def _peek_after_space(self) -> bytes:
        self._space()
        return self._peek()

    def _peek(self) -> bytes:
        mark = self._rest(1)
        if not mark:
            raise _SyntaxRefusal(_CUT_SHORT, len(self._data))
        return mark

    def _refuse(self, place: str) -> NoReturn:
        character = chr(self._data[self._at])
        shown = "\\'" if character == "'" else '"' if character == '"' else quote_text(character)[1:-1]
        raise _SyntaxRefusal(f"invalid character '{shown}' {place}", self._at)


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at

"""Report why a text is not JSON, in the words of Go's encoding/json (its scanner.go).

Called only after a parser refused the text, since it works character by character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.patterns import pattern

_END: Final = "unexpected end of JSON input"
_MOST_DEPTH: Final = 10_000
"""scanner.go: maxNestingDepth."""

_SPACE: Final = pattern(rb"[ \t\r\n]*")
_STRING: Final = pattern(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = pattern(rb"[0-9]*")
_ESCAPES: Final = b'bfnrt\\/"'
_HEX: Final = b"0123456789abcdefABCDEF"
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
        self._open: list[bytes] = []

    def run(self) -> None:
        expect: Callable[[], bool] = self._value
        while not expect():
            expect = self._after if self._was_value else self._next
        self._space()
        if self._at < len(self._data):
            self._refuse("after top-level value")

    _was_value = False
    _next: Callable[[], bool]

    def _value(self) -> bool:
        """Read a value, or the start of a container; True at the end of the whole text's value."""
        mark = self._peek_after_space()
        self._was_value = True
        if mark in b"{[":
            self._at += 1
            self._open.append(mark)
            if len(self._open) > _MOST_DEPTH:
                self._at -= 1
                self._refuse("exceeded max depth")
            self._was_value = False
            self._next = self._key_or_end if mark == b"{" else self._item_or_end
            return False
        if mark == b'"':
            self._string()
        elif mark in _WORDS:
            self._word(_WORDS[mark])
        elif mark == b"-" or mark.isdigit():
            self._number(mark)
        else:
            self._refuse("looking for beginning of value")
        return not self._open

    def _key_or_end(self) -> bool:
        return self._close() if self._peek_after_space() == b"}" else self._key()

    def _item_or_end(self) -> bool:
        return self._close() if self._peek_after_space() == b"]" else self._value()

    def _key(self) -> bool:
        if self._peek_after_space() != b'"':
            self._refuse("looking for beginning of object key string")
        self._string()
        if self._peek_after_space() != b":":
            self._refuse("after object key")
        self._at += 1
        self._was_value = False
        self._next = self._value
        return False

    def _after(self) -> bool:
        """After a value inside a container."""
        is_object = self._open[-1] == b"{"
        mark = self._peek_after_space()
        if mark == b",":
            self._at += 1
            self._was_value = False
            self._next = self._key if is_object else self._value
            return False
        if mark != (b"}" if is_object else b"]"):
            self._refuse("after object key:value pair" if is_object else "after array element")
        return self._close()

    def _close(self) -> bool:
        self._at += 1
        self._open.pop()
        self._was_value = True
        return not self._open

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
            raise _SyntaxRefusal(_END, len(self._data))
        return mark

    def _refuse(self, place: str) -> NoReturn:
        character = chr(self._data[self._at])
        shown = "\\'" if character == "'" else '"' if character == '"' else quote_text(character)[1:-1]
        raise _SyntaxRefusal(f"invalid character '{shown}' {place}", self._at)


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at

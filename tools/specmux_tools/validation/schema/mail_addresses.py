"""Checks mail addresses as Go's net/mail.ParseAddress does: one address, with a name, comments or a group.

Reads each character at most twice: a name before ``<`` first looks like an address.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

# isVchar without the specials of RFC 5322 3.2.3; includes the dot, as in Go.
_ATOM: Final = re.compile(r"[^\x00-\x20\x7f()<>\[\]:;@\\,\"]++")
_QUOTED: Final = re.compile(r'"((?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*+)"')
_LITERAL: Final = re.compile(r"\[([!-Z^-~]*+)\]")
_SPACE: Final = re.compile(r"[ \t]*+")
_COMMENT_MARK: Final = re.compile(r"\\.|[()]", re.DOTALL)


class _NoAddress(Exception):
    """Not an address."""


def is_mail_address(text: str) -> bool:
    reader = _Reader(text)
    try:
        return reader.addresses() == 1 and reader.is_done
    except _NoAddress:
        return False


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._text)

    def addresses(self, *, in_group: bool = False) -> int:
        """Number of addresses: one, or those of a group."""
        self._skip_space()
        begin = self._at
        if self._spec():
            self._skip_space()
            self._skip_comments()
            return 1
        self._at = begin
        if not self._text.startswith("<", begin):
            self._phrase()
        self._skip_space()
        if not in_group and self._take(":"):
            return self._group()
        if not (self._take("<") and self._spec() and self._take(">")):
            raise _NoAddress
        self._skip_comments()
        return 1

    def _spec(self) -> bool:
        """Whether an address without a name was read."""
        self._skip_space()
        local = self._match(_QUOTED)
        if not (local and local[1]) and not self._dotted():
            return False
        if not self._take("@"):
            return False
        self._skip_space()
        literal = self._match(_LITERAL)
        return _is_ip(literal[1]) if literal else self._dotted()

    def _dotted(self) -> bool:
        atom = self._match(_ATOM)
        return atom is not None and "" not in atom[0].split(".")

    def _phrase(self) -> None:
        words = 0
        while self._match(_QUOTED) or self._match(_ATOM):
            words += 1
            self._skip_comments()
        if not words:
            raise _NoAddress

    def _group(self) -> int:
        count = 0
        self._skip_space()
        while not (count == 0 and self._take(";")):
            count += self.addresses(in_group=True)
            if self._take(";"):
                break
            if not self._take(","):
                raise _NoAddress
        self._skip_comments()
        return count

    def _skip_comments(self) -> None:
        self._skip_space()
        while self._take("("):
            depth = 1
            while depth:
                mark = _COMMENT_MARK.search(self._text, self._at)
                if mark is None:
                    raise _NoAddress
                depth += {"(": 1, ")": -1}.get(mark[0], 0)
                self._at = mark.end()
            self._skip_space()

    def _skip_space(self) -> None:
        self._match(_SPACE)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += 1
            return True
        return False


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text

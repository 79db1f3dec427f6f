"""Match patterns as Go's regexp does: anywhere in the text, in time linear in its length.

RE2 matches; Go's regexp is its translation. RE2 works on bytes, and finds what matches nothing (``\\B``)
within a character as well, which is left out here. A pattern for which it takes more than 8 MiB is not
understood: few are, such as ``\\pL{1,1000}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from specmux_converters.go.regexp import Invalid, re2_text


class UndecidedMatch(Exception):
    """Why a pattern could not be matched."""


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

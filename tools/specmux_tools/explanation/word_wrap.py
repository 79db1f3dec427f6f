"""Wrap text as kubectl does (github.com/mitchellh/go-wordwrap), to the same characters.

Lines break only at white space, a no-break space belongs to its word, and a word longer than the width stays
whole.
"""

from __future__ import annotations

from typing import Final

from specmux_converters.lazy.patterns import pattern

_TOKEN: Final = pattern(
    "(\n)|([\t\v\f\r \x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)|"
    "([^\n\t\v\f\r \x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)"
)
"""A line break, white space by Go's ``unicode.IsSpace``, or a word."""


def wrapped(text: str, width: int) -> str:
    """``text`` with additional line breaks; existing ones are kept."""
    written: list[str] = []
    column = 0
    space = word = ""
    for match in _TOKEN.finditer(text):
        newline, blank, letters = match.groups()
        if letters is not None:
            word = letters
            # The first prefix of the word that exceeds the width counts.
            if width > 1 and column + len(space) + min(len(word), width - 1) > width:
                written.append("\n")
                column, space = 0, ""
            continue
        if word:
            written += (space, word)
            column += len(space) + len(word)
            space = word = ""
        if newline is None:
            space = blank
            continue
        if space and column + len(space) <= width:
            written.append(space)
        written.append("\n")
        column, space = 0, ""
    if word or column + len(space) <= width:
        written += (space, word)
    return "".join(written)

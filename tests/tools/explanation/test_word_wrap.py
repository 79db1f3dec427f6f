"""Line breaks as go-wordwrap puts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_tools.explanation.text import wrap_text

# From running github.com/mitchellh/go-wordwrap 1.0.1.
CASES = [
    ("", 5, ""),
    ("foo bar baz", 3, "foo\nbar\nbaz"),
    ("foo bar baz", 5, "foo\nbar\nbaz"),
    ("foo bar baz", 7, "foo bar\nbaz"),
    ("foobarbaz a", 4, "foobarbaz\na"),
    ("foo\u00a0bar baz", 8, "foo\u00a0bar\nbaz"),
    ("foo\nb   a r\n baz", 5, "foo\nb   a\nr\n baz"),
    ("one   ", 3, "one"),
    ("one   ", 6, "one   "),
    ("   \nfoo", 2, "\nfoo"),
]


@pytest.mark.parametrize(("text", "width", "expected"), CASES)
def test_breaks(text: str, width: int, expected: str) -> None:
    assert wrap_text(text, width) == expected


def one_by_one(text: str, width: int) -> str:
    """The same, told character by character."""
    out, column, space, word = "", 0, "", ""
    for char in text:
        if char == "\n":
            if word:
                out += space + word
            elif column + len(space) <= width:
                out += space
            out, column, space, word = out + "\n", 0, "", ""
        elif char in " \t\u2003":
            if not space or word:
                out, column, space, word = out + space + word, column + len(space) + len(word), "", ""
            space += char
        else:
            word += char
            if column + len(word) + len(space) > width and len(word) < width:
                out, column, space = out + "\n", 0, ""
    if word or column + len(space) <= width:
        out += space + word
    return out


@given(st.text(alphabet="ab \n\t\u2003\u00a0", max_size=60), st.integers(1, 12))
def test_words_and_characters_agree(text: str, width: int) -> None:
    assert wrap_text(text, width) == one_by_one(text, width)

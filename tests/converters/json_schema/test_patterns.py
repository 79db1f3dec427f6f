"""Patterns of Go in the syntax that all dialects share: what matches stays what matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.go.regexp_portable import portable


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^[a-z0-9]([\-a-z0-9]*[a-z0-9])?$"),
        (r"^\d+\.\w$", r"^[0-9]+\.[0-9A-Za-z_]$"),
        (r"^[\w-]+\S$", r"^[0-9A-Za-z_\-]+[^\t\n\f\r ]$"),
        (r"\_\:\/\@", "_:/@"),
        (r"a{,3}", r"a\{,3\}"),
        ("a]b", r"a\]b"),
        ("(?i)no", "[nN][oO]"),
        ("^((?i)a|b)c$", "^([aA]|[bB])c$"),
        ("(?i)[a-f0-9]", "[a-fA-F0-9]"),
        ("[[:alnum:]]", "[0-9A-Za-z]"),
        (r"\Aa\z", "^a$"),
        (r"\x{e9}\x41", "éA"),
        ("[&&x]", "[&x]"),
        ("a{1,5}?", "a{1,5}?"),
    ],
)
def test_written(pattern: str, written: str) -> None:
    assert portable(pattern) == written
    re.compile(written)


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?!a)b", r"\pL", "(?s).", "(?P<a>b)", "[[:foo:]]", "(", "[a", r"(a)\1", "(?i)[A-z]"]
)
def test_what_others_do_not_read_is_not_written(pattern: str) -> None:
    assert portable(pattern) is None


@given(st.text("ab-]^[\\/.|(){}*+?_ 1A", max_size=8), st.text("ab-]^[\\/.|(){}_ 1A", max_size=6))
def test_what_python_reads_as_go_does_still_matches_the_same(pattern: str, text: str) -> None:
    written = portable(pattern)
    if written is None or "[^]" in pattern or "[]" in pattern or "{" in pattern or "[[" in pattern:
        return  # Python reads these in ways of its own, or warns
    try:
        before = re.compile(pattern)
    except re.error:
        return
    assert bool(before.search(text)) == bool(re.compile(written).search(text))

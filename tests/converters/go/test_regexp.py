"""Regular expressions that Go compiles: every answer here is its own (regexp.Compile of Go 1.24)."""

from __future__ import annotations

import re

import pytest

from specmux_converters.go.regexp import pattern_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))$", "a{2}", "a{2,}",
        "a{0}", "a{,2}", "a{x", "{}", "a*?", "a+?", "a??", "a{2}?", "(?:a)", "(?i)a", "(?i-s:a)", "(?P<n>a)",
        "(?<n>a)", "()*", "(|a)", "a||b", r"\d\D\s\S\w\W\b\B\A\z", r"\pL\PN\p{Greek}\p{^Lu}", r"[\d\pL]",
        r"\p{Old_Italic}\P{^Nd}", r"[^\p{Zs}\P{Han}]", r"\p{Any}",
        r"[[:alpha:][:^digit:]]", "[]a]", "[^]a]", "[a-]", "[-a]", "[a-z-9]", "[[:x]", r"[\]]",
        r"\x41\x{1F600}",
        r"\0\07\12\123", r"\a\f\n\r\t\v\.\-\_\/\"", r"\Qa*+(\E", r"\Q*", r"\Q\E", "a{1000}", "(a{10}){100}",
        "é", "[à-ü]", "(a{500})*", "^*",
    ],
)  # fmt: skip
def test_pattern_that_go_compiles(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "(a", "a)", "[", "[a", "[]", "[^]", "*", "+a", "(*a)", "a|*", "a**", "a+*", "a*+",
        "a{2}{3}",
        "a{2}*", "a???", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", "(?P<n", "(?P<n-m>a)", "(?i-)", "(?x:a)", "(?",
        "\\", r"\1", r"\8", r"\c", r"\Z", r"\E", r"\C", r"\e", r"\x", r"\x{}", r"\x{110000}", r"\xg0", r"\é",
        r"[\b]", r"[\z]", r"[\Q]", "[z-a]", r"[a-\d]", "[[:x:]]", "[[:x:]", r"\p", r"\p{", r"\p{1}",
        r"\p{}", r"\p{Klingon}", r"[\p{^Alphabetic}]", r"\P{Is_Greek}", r"\p{L&}",
        "a{1001}", "a{2,1}", "a{0,1001}", "(a{10}){101}", "((a{20}){20}){20}", "a{99999999999999999999}",
    ],
)  # fmt: skip
def test_pattern_that_go_refuses(pattern: str) -> None:
    assert pattern_fault(pattern) is not None


@pytest.mark.parametrize(
    "text", ["[[:" * 50_000, "(" * 100_000, "a{1}" * 20_000, r"\Q" * 50_000, "[a-z" * 40_000]
)
def test_long_pattern_is_read_once(text: str) -> None:
    """Quadratic time would run into the timeout of the suite."""
    pattern_fault(text)


@pytest.mark.parametrize(
    "name", ["Letter", "Lowercase_Letter", "LowercaseLetter", "greek", "Cn", "LC", "ASCII", "-l"]
)
def test_class_that_go_has_since_1_25(name: str) -> None:
    assert pattern_fault(rf"^\p{{{name}}}+$") is None


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        (r"a\p{Foo}b", r"\p{Foo}"), (r"\p{1}", r"\p{1}"), (r"\p", r"\p"), (r"\p{Greek", r"\p{Greek"),
        (r"\p{^^L}", r"\p{^^L}"), (r"\pX", r"\pX"), (r"[\P{}]", r"\P{}"),
    ],
)  # fmt: skip
def test_class_that_go_does_not_have(pattern: str, part: str) -> None:
    assert pattern_fault(pattern) == f"error parsing regexp: invalid character class range: `{part}`"


def test_patterns_that_python_alone_compiles_are_told_apart() -> None:
    for pattern in (r"(?=a)", r"(a)\1", "a*+"):
        re.compile(pattern)
        assert pattern_fault(pattern) is not None

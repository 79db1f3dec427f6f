from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.go.regexp import Pattern, UndecidedMatch


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a+$", ["a", "aaa"], ["", "b", "aab", "a\n"]),
        ("b", ["abc", "b"], ["", "ac"]),
        ("^(foo|bar)?$", ["", "foo", "bar"], ["foobar", "x"]),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", ["a", "a-b"], ["-a", "a-", "A"]),
        ("^[^-]{2,3}$", ["ab", "abc"], ["a", "abcd", "a-"]),
        (r"^\d{4}-\d\d$", ["2020-01"], ["2020-1", "٢٠٢٠-01"]),
        (r"^[[:alpha:]_][[:word:]]*\z", ["a1", "_"], ["1a", "a-"]),
        (r"(?i)^abc$", ["ABC", "aBc"], ["abd"]),
        (r"(?i)^ſk$", ["sK", "S\u212a", "ſk"], ["fk"]),
        (r"(?i)^ı$", ["ı"], ["i", "I"]),
        (r"(?i)^[ß-à]$", ["ẞ", "À"], ["s"]),
        (r"^\pL+\p{Nd}$", ["é1", "Ж٣"], ["1", "é"]),
        (r"^\p{Greek}+$", ["αΩ", "\u1f00"], ["a", "µ", "ж"]),
        (r"^[\p{Han}\p{cyrillic}]+$", ["漢字", "Ж〇"], ["か", "b"]),
        (r"^\P{Latin}$", ["1", "α"], ["é"]),
        (r"^\p{^Latin}\p{Any}\p{ASCII}$", ["1é~"], ["aéa", "1éé"]),
        (r"^\p{LC}\p{Letter}$", ["aʰ", "ǅ日"], ["ʰa", "1a"]),
        (r"^\p{C}\p{Cn}\p{Assigned}$", ["\u0378\u0378a"], ["aaa", "\u0378\u0378\u0378"]),
        (r"(?i)^\p{Greek}$", ["µ", "\u2126", "α"], ["a"]),
        (r"(?i)^[^a]$", ["b", "1"], ["a", "A"]),
        (r"(?i)^\W$", ["-", "é"], ["ſ", "\u212a", "a"]),
        (r"(?i)^[\w]\P{Lu}$", ["ſ1", "\u212a-"], ["aa", "-1"]),
        (r"(?i)^[[:^alpha:]]$", ["1"], ["ſ", "a"]),
        (r"^\x41\x{42}\101$", ["ABA"], ["AB"]),
        (r"^[\]\-a]+$", ["]-a"], ["b"]),
        (r"^\Qa.b\E$", ["a.b"], ["axb"]),
        (r"^\Qa.b\E{2}$", ["a.bb"], ["a.ba.b"]),
        (r"(?i)^[\P{Greek}]$", ["a", "1"], ["α", "Ω", "\u2126", "µ"]),
        (r"(?i)(?-i)^[\P{Greek}]$", ["a", "µ"], ["α"]),
        (r"(?i:x)[\P{Lu}]$", ["Xa"], ["XA"]),
        ("(?P<n>a)(?<n>b)", ["ab"], ["a"]),
        (r"\B", ["", "-", "é", "aé"], ["a", "aéa"]),
        ("a.b", ["axb"], ["a\nb"]),
        ("(?s)a.b", ["a\nb"], ["ab"]),
        ("^$", [""], ["a"]),
        ("", ["", "a"], []),
        ("(^a)|(b$)", ["ax", "xb"], ["xa", "bx"]),
        (r"^(\*|a)(,(\*|a))*$", ["*", "a,*,a"], ["", "a,"]),
        (r"\bword\b", ["a word", "word", "word."], ["words", "sword"]),
        (r"a\Bb", ["ab"], ["a b"]),
        ("(?m)^a$", ["a", "b\na\nc"], ["ab", "b\nac"]),
    ],
)
def test_as_go_matches(pattern: str, good: list[str], bad: list[str]) -> None:
    compiled = Pattern(pattern)
    assert [text for text in good if not compiled.matches(text)] == []
    assert [text for text in bad if compiled.matches(text)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "a{1000}{1000}", "(a{100}){100}", "(", "[a", "a)", "*a", "a**", "[z-a]"],
)
def test_what_is_not_understood_is_told(pattern: str) -> None:
    with pytest.raises(UndecidedMatch, match="not understood"):
        Pattern(pattern).matches("a")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "(x+x+)+y"])
def test_no_pattern_takes_long(pattern: str) -> None:
    assert not Pattern(pattern).matches("a" * 20_000 + "!" + "x" * 20_000)


simple = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "[^a]", "."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"({pair[0]}){pair[1]}"),
        inner.map(lambda each: f"({each}){{1,2}}"),
    ),
    max_leaves=5,
)


@given(simple, st.text("abc", max_size=6), st.sampled_from(["{}", "^{}", "{}$", "^{}$"]))
def test_the_common_part_is_what_python_matches(pattern: str, text: str, frame: str) -> None:
    pattern = frame.format(f"(?:{pattern})")
    wanted = re.search(pattern.replace("$", r"\Z"), text) is not None
    assert Pattern(pattern).matches(text) == wanted


@given(simple, st.text("abc", max_size=6))
def test_what_is_found_is_what_python_finds(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    assert Pattern(pattern).find(text) == (None if found is None else found.span())


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("(?m)^a$", "a\nba\na", ["a", "a"]),
        ("a|ab", "abab", ["a", "a"]),
        ("(?U)a+", "aaa", ["a", "a", "a"]),
        ("(|a)*", "aa", ["", "", ""]),
        (r"\w+?\b", "ab cd", ["ab", "cd"]),
        (r"\B", "aé日-a", ["", ""]),
        ("é|", "aéb日", ["", "é", "", ""]),
        ("[\U0001f600é]+", "a\U0001f600é b\ud800é", ["\U0001f600é", "é"]),
    ],
)
def test_as_go_finds(pattern: str, text: str, found: list[str]) -> None:
    assert [text[begin:end] for begin, end in Pattern(pattern).find_all(text)] == found

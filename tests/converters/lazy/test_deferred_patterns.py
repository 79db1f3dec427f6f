"""Deferred patterns are the standard library's, once they are used."""

import re
from typing import Any

import pytest

from specmux_converters.lazy.patterns import pattern


@pytest.mark.parametrize(
    "name", [name for name in dir(re.Pattern) if name != "scanner" and not name.startswith("_")]
)
def test_members_are_those_of_a_compiled_pattern(name: str) -> None:
    given: tuple[Any, ...] = (r"(?P<letter>[a-z])x", re.ASCII | re.IGNORECASE)
    ours, standard = (getattr(made(*given), name) for made in (pattern, re.compile))
    if not callable(standard):
        assert ours == standard
        return
    arguments = ("-", "axbx") if name.startswith("sub") else ("axbx",)
    results = [each(*arguments) for each in (ours, standard)]
    if name == "finditer":
        results = [[match[0] for match in each] for each in results]
    assert str(results[0]) == str(results[1])


def test_it_is_compiled_at_the_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[object, ...]] = []
    original = re.compile

    def compile_(*given: Any) -> Any:
        compiled.append(given)
        return original(*given)

    monkeypatch.setattr(re, "compile", compile_)
    digits = pattern(rb"[0-9]+")
    assert compiled == []
    assert digits.fullmatch(b"12") is not None
    assert digits.fullmatch(b"1a") is None
    assert digits.sub(b"", b"a1") == b"a"
    assert compiled == [(rb"[0-9]+", 0)]


def test_wrong_patterns_are_refused_when_used() -> None:
    with pytest.raises(re.error, match="unterminated"):
        pattern("[").match("")

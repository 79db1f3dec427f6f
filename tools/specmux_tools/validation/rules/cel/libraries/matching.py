"""Regular expressions: ``matches``, ``find``, ``findAll`` (apiserver, pkg/cel/library/regex.go)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from specmux_converters.go.regexp import pattern_fault
from specmux_converters.go.regexp_match import Pattern, UndecidedMatch
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, member
from specmux_tools.validation.rules.cel.checking.types import INT, STRING, list_of
from specmux_tools.validation.rules.cel.values.values import CelError, UndecidedRule

_compiled = lru_cache(maxsize=256)(Pattern)


def matches(text: str, pattern: str) -> bool:
    try:
        return _compiled(pattern).matches(text)
    except UndecidedMatch as error:
        raise _failure(pattern, error) from error


def _failure(pattern: str, error: UndecidedMatch, prefix: str = "") -> CelError | UndecidedRule:
    """The error of a pattern: of the rule where Go refuses it, else undecided."""
    fault = pattern_fault(pattern)
    return UndecidedRule(str(error)) if fault is None else CelError(prefix + fault)


def _find(text: str, pattern: str) -> str:
    try:
        found = _compiled(pattern).find(text)
    except UndecidedMatch as error:
        raise _failure(pattern, error, "Illegal regex: ") from error
    return text[slice(*found)] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> tuple[str, ...]:
    found: list[str] = []
    try:
        for begin, end in _compiled(pattern).find_all(text):
            if len(found) == most:
                break
            found.append(text[begin:end])
    except UndecidedMatch as error:
        raise _failure(pattern, error, "Illegal regex: ") from error
    return tuple(found)


REGEX: Final = CelLibrary(
    {
        "find": (member("string_find_string", (STRING, STRING), STRING, _find),),
        "findAll": (
            member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
            member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
        ),
    }
)

"""Texts: positions, parts, cases, joining, quoting (cel-go, ext/strings.go); regular expressions
(apiserver, pkg/cel/library/regex.go)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from specmux_converters.go.regexp import Pattern, UndecidedMatch, pattern_fault
from specmux_converters.go.text import SPACES
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import DYN, INT, STRING, list_of
from specmux_tools.validation.rules.cel.libraries.formatting import format_text
from specmux_tools.validation.rules.cel.values.values import (
    MOST_TEXT,
    CelError,
    CostExceeded,
    UndecidedRule,
    print_value,
)

_TEXTS: Final = list_of(STRING)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = {
    ord(mark): f"\\{letter}" for mark, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)
}
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


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        if not part:
            return len(text)
        return text.rfind(part)
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    count = text.count(old) if most < 0 else min(most, text.count(old))
    if len(text) + count * (len(new) - len(old)) > MOST_TEXT:
        raise CostExceeded
    return text.replace(old, new, max(most, -1))


def _split(text: str, separator: str, most: int = -1) -> tuple[str, ...]:
    if most == 0:
        return ()
    if separator:
        return tuple(text.split(separator, most - 1 if most > 0 else -1))
    if 0 < most < len(text):
        return (*text[: most - 1], text[most - 1 :])
    return tuple(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if end is not None and not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def _join(parts: Any, separator: str = "") -> str:
    found = []
    for part in parts:
        if type(part) is not str:
            raise CelError(f"join: invalid input: {print_value(part)}")
        found.append(part)
    return separator.join(found)


def quote(text: str) -> str:
    escaped = re.sub("[\ud800-\udfff]", "\ufffd", text).translate(_QUOTED)
    return f'"{escaped}"'


def _clamp(search: Callable[[str, str, int], int], text: str, part: str, start: int) -> int:
    if start < 0:
        raise _out_of_range(start)
    return search(text, part, start) if part else min(start, len(text))


STRINGS: Final = CelLibrary(
    {
        "charAt": (member("string_char_at_int", (STRING, INT), STRING, _char_at),),
        "indexOf": (
            member("string_index_of_string", (STRING, STRING), INT, _index_of),
            member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        "lastIndexOf": (
            member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
            member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of),
        ),
        "lowerAscii": (member("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER)),),
        "upperAscii": (member("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER)),),
        "replace": (
            member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
            member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
        ),
        "split": (
            member("string_split_string", (STRING, STRING), _TEXTS, _split),
            member("string_split_string_int", (STRING, STRING, INT), _TEXTS, _split),
        ),
        "substring": (
            member("string_substring_int", (STRING, INT), STRING, _substring),
            member("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
        ),
        "trim": (member("string_trim", (STRING,), STRING, lambda text: text.strip(SPACES)),),
        "format": (member("string_format", (STRING, list_of(DYN)), STRING, format_text),),
        "strings.quote": (Overload("strings_quote", (STRING,), STRING, quote),),
        "join": (
            member("list_join", (_TEXTS,), STRING, _join),
            member("list_join_string", (_TEXTS, STRING), STRING, _join),
        ),
    }
)

EMPTY_PARTS: Final = CelLibrary(
    {
        name: (member(f"string_{label}_of_string_int", (STRING, STRING, INT), INT, partial(_clamp, search)),)
        for name, label, search in (
            ("indexOf", "index", _index_of),
            ("lastIndexOf", "last_index", _last_index_of),
        )
    }
)
"""An empty text is found at the offset or, beyond the end, at the end (cel-go 0.29, ext/strings.go)."""

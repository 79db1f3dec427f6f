"""Semantic versions (apiserver, pkg/cel/library/semverlib.go; github.com/blang/semver)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member, orders
from specmux_tools.validation.rules.cel.checking.types import BOOL, INT, STRING, struct
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    UINT_MAX,
    CelError,
    Opaque,
    bounded_int,
    takes,
)

SEMVER: Final = struct("kubernetes.Semver")

_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_WORD: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class SemverValue(Opaque):
    numbers: tuple[int, int, int]
    before: tuple[int | str, ...] = ()
    """Identifiers of a pre-release."""
    type_name = SEMVER.name


def read_version(text: str) -> SemverValue:
    """Raises CelError, in Go's words."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, has_build, build = parts[2].partition("+")
    patch, has_before, before = rest.partition("-")
    numbers = (_number("major", parts[0]), _number("minor", parts[1]), _number("patch", patch))
    words = tuple(map(_word, before.split("."))) if has_before else ()
    for each in build.split(".") if has_build else ():
        if not each:
            raise CelError("Build meta data is empty")
        if not _WORD.fullmatch(each):
            raise CelError(f"Invalid character(s) found in build meta data {quote_text(each)}")
    return SemverValue(numbers, words)


def _number(name: str, text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if not _DIGITS.fullmatch(text):
        raise CelError(f"Invalid character(s) found in {name} number {quote_text(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name.title()} number must not contain leading zeroes {quote_text(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    found = bounded_int(text)
    if found is None or found > UINT_MAX:
        raise CelError(f"strconv.ParseUint: parsing {quote_text(text)}: value out of range")
    return found


def _word(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quote_text(text)}")
        return _unsigned(text)
    if not _WORD.fullmatch(text):
        raise CelError(f"Invalid character(s) found in prerelease {quote_text(text)}")
    return text


def _normalise(text: str) -> str:
    """Without v and leading zeroes, with all three numbers. Raises CelError."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            kept = part.lstrip("0")
            parts[index] = kept if kept and kept[0] in "0123456789" else f"0{kept}"
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalises: bool = False) -> SemverValue:
    return read_version(_normalise(text) if normalises else text)


def _key(value: SemverValue) -> tuple[Any, ...]:
    words = tuple((True, 0, each) if isinstance(each, str) else (False, each, "") for each in value.before)
    return value.numbers, not value.before, words


def compare_versions(left: SemverValue, right: SemverValue) -> int:
    one, other = _key(left), _key(right)
    return (one > other) - (one < other)


def _part(index: int) -> Callable[[SemverValue], int]:
    def get(value: SemverValue) -> int:
        found = value.numbers[index]
        return found if found <= INT_MAX else found - UINT_MAX - 1

    return get


VERSIONS: Final = CelLibrary(
    {
        "semver": (
            Overload("string_to_semver", (STRING,), SEMVER, _semver),
            Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver),
        ),
        "isSemver": (
            Overload("is_semver_string", (STRING,), BOOL, takes(_semver)),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, takes(_semver)),
        ),
        **orders("semver", SEMVER, compare_versions),
        "major": (member("semver_major", (SEMVER,), INT, _part(0)),),
        "minor": (member("semver_minor", (SEMVER,), INT, _part(1)),),
        "patch": (member("semver_patch", (SEMVER,), INT, _part(2)),),
    }
)

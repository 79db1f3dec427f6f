"""Names that an apiserver generates from ``generateName`` before it validates an object.

It appends five random characters (apiserver, pkg/storage/names/generate.go). Rules see the name, so an object
is judged with several: together they have each of the 27 characters at each of the five places, which tells
rules apart that accept some suffixes only. What a rule says of every one is the verdict; the rest is not
judged, as the next apiserver may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from specmux_tools.validation.report import Check, Severity, Violation

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, and without digits that look like them (apimachinery, pkg/util/rand)."""
_LENGTH: Final = 5
_MOST_PREFIX: Final = 63 - _LENGTH
SHOWN_SUFFIX: Final = "x" * _LENGTH
_SUFFIXES: Final = (
    SHOWN_SUFFIX,
    *((_ALPHABET[start:] + _ALPHABET)[:_LENGTH] for start in range(len(_ALPHABET))),
)


def generated_name(metadata: Mapping[str, Any], suffix: str = SHOWN_SUFFIX) -> str:
    """The name with that suffix; "" for metadata of which none is generated."""
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return ""
    return prefix[:_MOST_PREFIX] + suffix


def judge_with_names(
    metadata: Mapping[str, Any], judge: Callable[[str], list[Violation]], *, reads_name: bool
) -> list[Violation]:
    """The violations that ``judge`` finds with a generated name, or with "" where none is generated.
    ``reads_name``: whether the name can matter."""
    name = generated_name(metadata)
    found = judge(name)
    if not name or not reads_name:
        return found
    others = [(suffix, judge(generated_name(metadata, suffix))) for suffix in _SUFFIXES[1:]]
    if all(_has_error(each) == _has_error(found) for _, each in others):
        return found
    common = set(_keys(found, SHOWN_SUFFIX)).intersection(*(_keys(each, suffix) for suffix, each in others))
    differing = next(
        violation
        for suffix, each in ((SHOWN_SUFFIX, found), *others)
        for key, violation in zip(_keys(each, suffix), each, strict=True)
        if key not in common and violation.severity is Severity.ERROR
    )
    text = f"the random end of the generated name decides whether this is refused: {differing.message}"
    note = Violation(Severity.NOTE, Check.NOT_CHECKED, ("metadata", "generateName"), text)
    return [
        *(each for key, each in zip(_keys(found, SHOWN_SUFFIX), found, strict=True) if key in common),
        note,
    ]


def _has_error(violations: Iterable[Violation]) -> bool:
    return any(each.severity is Severity.ERROR for each in violations)


def _keys(violations: Iterable[Violation], suffix: str) -> list[tuple[Any, ...]]:
    return [(each.severity, each.check, each.path, each.message.replace(suffix, "")) for each in violations]

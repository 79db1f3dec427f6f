"""Changes of fields that are no fault of an object, and change what becomes of it: defaults, and values of
enumerations that an apiserver checks in code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_schemas.differences.changes import changes_of
from specmux_schemas.differences.places import Place
from specmux_schemas.differences.verdicts.impacts import ChangeSeverity
from specmux_schemas.resources import GroupVersionKind, split
from specmux_schemas.validation.report import Check, Path, Severity, Violation

_DEFAULTS: Final = frozenset(("default-changed", "default-added", "default-removed"))
_GONE_VALUE: Final = "enum-value-removed"
_STEP: Final = re.compile(r'\[\]|\{\}|\["(?:[^"\\]|\\.)*"\]|[^.\[{]+')


def by_kind(places: Iterable[Place]) -> dict[GroupVersionKind, list[Place]]:
    """Those that concern objects, by the kind of these; a default that is described for the first time was
    there before."""
    found: dict[GroupVersionKind, list[Place]] = {}
    for place in places:
        group = split(place.group_version)
        is_of_field = place.path and place.id in (*_DEFAULTS, _GONE_VALUE)
        if group is not None and is_of_field and place.severity is not ChangeSeverity.NOTICE:
            found.setdefault(GroupVersionKind(*group, place.kind), []).append(place)
    return found


def changes_in(value: Any, places: Iterable[Place]) -> Iterator[Violation]:
    """Of one object: a default concerns it where it leaves the field out, a value where it has it."""
    for place in places:
        if place.path == "status" or place.path.startswith("status."):
            continue
        (change,) = changes_of([(place, place.severity)])
        for path, is_set, found in _values(value, tuple(_STEP.findall(place.path)), ()):
            is_default = place.id in _DEFAULTS
            if is_set is not is_default and (is_default or found == place.what):
                text = f"{place.path}: {change.message}"
                yield Violation(Severity.WARNING, Check.SCHEMA, path, text)


def _values(value: Any, steps: tuple[str, ...], path: Path) -> Iterator[tuple[Path, bool, Any]]:
    """Where the steps lead to, and whether something is there; not where nothing is on the way."""
    if not steps:
        yield path, True, value
        return
    step, *rest = steps
    if step == "[]":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _values(item, tuple(rest), (*path, index))
    elif isinstance(value, Mapping):
        names = list(value) if step == "{}" else [orjson.loads(step[1:-1]) if step[0] == "[" else step]
        for name in names:
            if name in value:
                yield from _values(value[name], tuple(rest), (*path, name))
            elif not rest:
                yield path, False, None

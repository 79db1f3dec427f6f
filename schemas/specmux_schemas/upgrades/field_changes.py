"""Changes that keep an object valid but alter its effect: defaults, and enum values that an apiserver checks
in code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_converters.group_versions import split
from specmux_converters.json_values import array
from specmux_schemas.differences.changes import changes_of
from specmux_schemas.differences.places import Place
from specmux_schemas.differences.verdicts.impacts import ChangeSeverity
from specmux_schemas.resources import GroupVersionKind
from specmux_schemas.validation.report import Check, Path, Severity, Violation

_DEFAULTS: Final = frozenset(("default-changed", "default-added", "default-removed"))
_GONE_VALUE: Final = "enum-value-removed"
_STEP: Final = re.compile(r'\[\]|\{\}|\["(?:[^"\\]|\\.)*"\]|[^.\[{]+')


def by_kind(places: Iterable[Place]) -> dict[GroupVersionKind, list[Place]]:
    """Selects the changes that concern objects, by kind. A newly described default existed before, so it is
    left out."""
    found: dict[GroupVersionKind, list[Place]] = {}
    for place in places:
        group = split(place.group_version)
        is_of_field = place.path and place.id in (*_DEFAULTS, _GONE_VALUE)
        if group is not None and is_of_field and place.severity is not ChangeSeverity.NOTICE:
            found.setdefault(GroupVersionKind(*group, place.kind), []).append(place)
    return found


def changes_in(value: Any, places: Iterable[Place]) -> Iterator[Violation]:
    """Yields the changes that apply to one object: a default if the field is absent, an enum value if it is
    present."""
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
    """Yields the paths that the steps lead to, and whether the field is present; nothing if a parent is
    absent."""
    if not steps:
        yield path, True, value
        return
    step, *rest = steps
    if step == "[]":
        for index, item in enumerate(array(value)):
            yield from _values(item, tuple(rest), (*path, index))
    elif isinstance(value, Mapping):
        names = list(value) if step == "{}" else [orjson.loads(step[1:-1]) if step[0] == "[" else step]
        for name in names:
            if name in value:
                yield from _values(value[name], tuple(rest), (*path, name))
            elif not rest:
                yield path, False, None

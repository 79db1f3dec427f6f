"""Changes for readers: one per edit, with all the places where it shows.

An edit of a component shows wherever it is referred to; a new parameter, on every operation. Sorted, so equal
comparisons give equal bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.places import Place
from specmux_tools.differences.rules import RULES, ChangeSeverity, Impacts
from specmux_tools.reports import Where

_FINGERPRINT_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place where a change shows."""

    group_version: GroupVersion
    kind: str
    path: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.group_version, self.kind, self.path) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An edit. ``places``: sorted, at least one."""

    id: str
    severity: ChangeSeverity
    impacts: Impacts
    what: Any
    old: Any
    new: Any
    places: tuple[Location, ...]
    where: Where | None = None
    """The first place in a file, if known."""

    @property
    def location(self) -> Location:
        """The first place, which represents all."""
        return self.places[0]

    @property
    def message(self) -> str:
        """The rule's text, with the old and new values if they are short."""
        said = RULES[self.id].says.replace("{what}", word(self.what))
        before, after = short(self.old), short(self.new)
        if before and after:
            return f"{said}: {before} became {after}"
        if before or after:
            return f"{said}: {before or after}"
        return said

    @property
    def fingerprint(self) -> str:
        """Equal for the same change in every comparison: from id, group-version, kind, path and what."""
        return _fingerprint(self.id, self.location, self.what)


def changes_of(places: Iterable[tuple[Place, ChangeSeverity]]) -> tuple[Change, ...]:
    """The most severe first; ``places``: with the severity that applies to them."""
    groups: dict[Any, list[Place]] = {}
    for place, severity in places:
        groups.setdefault(edit_of(place, severity), []).append(place)
    changes = [_change(severity, found) for (severity, *_), found in groups.items()]
    changes.sort(
        key=lambda each: (-each.severity, each.location, each.id, json_line(each.what), each.impacts)
    )
    return tuple(changes)


def fingerprints(places: Iterable[tuple[Place, ChangeSeverity]]) -> dict[tuple[Any, ...], str]:
    """The fingerprint of the change that each edit becomes."""
    firsts: dict[tuple[Any, ...], Place] = {}
    for place, severity in places:
        edit = edit_of(place, severity)
        firsts[edit] = min(firsts.get(edit, place), place, key=_location)
    return {edit: _fingerprint(first.id, _location(first), first.what) for edit, first in firsts.items()}


def word(what: Any) -> str:
    """A change's ``what`` as text."""
    return what if isinstance(what, str) else json_line(what)


def _fingerprint(change: str, place: Location, what: Any) -> str:
    parts = [change, place.group_version, place.kind, place.path, what]
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:_FINGERPRINT_DIGITS]


def json_line(value: Any) -> str:
    """A JSON value on one line."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def edit_of(place: Place, severity: ChangeSeverity) -> tuple[Any, ...]:
    where = place.origin or (place.group_version, place.kind, place.path)
    return severity, place.id, where, json_line(place.what), place.impacts


def _change(severity: ChangeSeverity, places: list[Place]) -> Change:
    first = min(places, key=_location)
    locations = tuple(sorted({_location(place) for place in places}))
    return Change(
        id=first.id,
        severity=severity,
        impacts=first.impacts,
        what=first.what,
        old=first.old,
        new=first.new,
        places=locations,
    )


def _location(place: Place) -> Location:
    return Location(place.group_version, place.kind, place.path)


_SHORT: Final = 80


def short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) and value.isprintable() else json_line(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"

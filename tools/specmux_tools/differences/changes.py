"""Changes at their places, with impacts there; and for readers one per edit, with all its places.

An edit of a component shows wherever it is referred to; a new parameter, on every operation. Sorted, so equal
comparisons give equal bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import Finding, show_path
from specmux_tools.differences.rules import RULES, ChangeSeverity, Impact, Impacts
from specmux_tools.differences.served import Basis
from specmux_tools.reports import Where

_ALPHA: Final = re.compile(r"v[0-9]+alpha[0-9]+")
_FINGERPRINT_DIGITS: Final = 16
_SHORT: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``kind``: "METHOD /path" for operations without one, "" for whole group-versions."""

    id: str
    group_version: GroupVersion
    kind: str
    path: str
    what: Any
    impacts: Impacts
    old: Any = None
    new: Any = None
    origin: str = ""
    """Common to all places that the same edit changed."""

    @property
    def severity(self) -> ChangeSeverity:
        return self.impacts.severity


class Direction(NamedTuple):
    """The users of a kind: clients that write it, clients that read it, stored objects."""

    write: bool = True
    read: bool = True
    stored: bool = True


EVERYBODY: Final = Direction()


@dataclass(frozen=True, slots=True)
class Judge:
    """Determines the impacts of a change in one group-version."""

    group_version: GroupVersion
    basis: Basis

    def field(self, finding: Finding, direction: Direction, *, is_own_status: bool) -> Impacts:
        """The impacts of a change of a field. ``is_own_status``: the kind's controller writes it, through a
        subresource."""
        rule = RULES[finding.id]
        impacts = finding.impacts or rule.impacts
        if rule.is_lowered_when_described and self.basis is Basis.DESCRIBED:
            impacts = impacts.lower()
        if is_own_status:
            impacts = impacts.lower()._replace(read=impacts.read)
        masked = (each if is_user else Impact.NONE for each, is_user in zip(impacts, direction, strict=True))
        return self.whole(Impacts(*masked))

    def whole(self, impacts: Impacts) -> Impacts:
        """The impacts of any other change. Alpha versions may break, unless their schemas are enforced."""
        if self.basis is Basis.ENFORCED or not _ALPHA.fullmatch(self.group_version.rpartition("/")[2]):
            return impacts
        return Impacts(*(min(impact, Impact.WARNING) for impact in impacts))

    def place(self, finding: Finding, kind: str, impacts: Impacts) -> Place:
        return Place(
            id=finding.id,
            group_version=self.group_version,
            kind=kind,
            path=show_path(finding.steps),
            what=finding.what,
            impacts=impacts,
            old=finding.old,
            new=finding.new,
            origin=finding.origin,
        )


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
    return Change(
        id=first.id,
        severity=severity,
        impacts=first.impacts,
        what=first.what,
        old=first.old,
        new=first.new,
        places=tuple(sorted(set(map(_location, places)))),
    )


def _location(place: Place) -> Location:
    return Location(place.group_version, place.kind, place.path)


def short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) and value.isprintable() else json_line(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"

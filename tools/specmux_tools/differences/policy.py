"""A team's policy on changes: other severities, and changes allowed for a reason.

Globs have only ``*`` and ``?``, since brackets are part of paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from specmux_converters.errors import InvalidDocument
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to
from specmux_tools.differences.changes import Change, Place, edit_of, fingerprints, word
from specmux_tools.differences.rules import RULES, SEVERITIES, ChangeSeverity

_GLOBS: Final = ("id", "groupVersion", "kind", "path", "what")
_NAMED: Final = (*_GLOBS, "fingerprint")
_HEX: Final = re.compile(r"[0-9a-f]{16}")
_DATE: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Changes that match all patterns are allowed, through the day ``until``."""

    patterns: tuple[re.Pattern[str], ...]
    fingerprint: str | None
    """The fingerprint of the change to which the place belongs."""
    shown: str
    reason: str
    until: str | None

    def matches(self, place: Place, fingerprint: str) -> bool:
        if self.fingerprint not in (None, fingerprint):
            return False
        values = (place.id, place.group_version, place.kind, place.path, word(place.what))
        return all(pattern.fullmatch(value) for pattern, value in zip(self.patterns, values, strict=True))


@dataclass(frozen=True, slots=True)
class Policy:
    severities: Mapping[str, ChangeSeverity]
    allowances: tuple[Allowance, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Places with the severity that applies, without allowed ones."""

    places: tuple[tuple[Place, ChangeSeverity], ...]
    allowed: int
    notes: tuple[str, ...]
    """Entries of the policy that allow nothing, or have expired."""


NO_POLICY: Final = Policy({})


def judge(places: Iterable[Place], policy: Policy, *, today: str) -> PolicyVerdict:
    """``today``: such as "2026-11-30"; an entry whose ``until`` has passed allows nothing."""
    valid = [entry for entry in policy.allowances if entry.until is None or entry.until >= today]
    used: set[int] = set()
    kept = []
    allowed = 0
    found = [(place, policy.severities.get(place.id, place.severity)) for place in places]
    names = fingerprints(found) if any(entry.fingerprint for entry in valid) else {}
    for place, severity in found:
        name = names.get(edit_of(place, severity), "")
        matching = {index for index, entry in enumerate(valid) if entry.matches(place, name)}
        used |= matching
        allowed += bool(matching)
        if not matching:
            kept.append((place, severity))
    notes = [
        f"policy: the entry for {entry.shown} expired on {entry.until}"
        for entry in policy.allowances
        if entry not in valid
    ]
    notes += [
        f"policy: the entry for {entry.shown} allows nothing that changed"
        for index, entry in enumerate(valid)
        if index not in used
    ]
    return PolicyVerdict(tuple(kept), allowed, tuple(notes))


def read_policy(document: Any) -> Policy:
    """Raises InvalidDocument with the pointer of the fault."""
    root = _members(document, (), ("severity", "allow"))
    severities = {}
    for change, level in _object(root.get("severity") or {}, ("severity",)).items():
        if change not in RULES:
            close = get_close_matches(change, RULES, n=1)
            meant = f"did you mean {close[0]}?" if close else f"ids are {', '.join(sorted(RULES))}"
            _refuse(f"is no id of a change; {meant}", ("severity", change))
        if not isinstance(level, str) or level not in SEVERITIES:
            _refuse(f"must be one of {', '.join(SEVERITIES)}", ("severity", change))
        severities[change] = SEVERITIES[level]
    allow = root.get("allow") or []
    if not isinstance(allow, list):
        _refuse("must be a list", ("allow",))
    return Policy(severities, tuple(_allowances(allow)))


def _allowances(entries: list[Any]) -> Iterator[Allowance]:
    for index, entry in enumerate(entries):
        where = ("allow", index)
        members = _members(entry, where, (*_NAMED, "reason", "until"))
        globs = {}
        for key in _GLOBS:
            globs[key] = members.get(key, "*")
            if not isinstance(globs[key], str):
                _refuse("must be a text", (*where, key))
        fingerprint = members.get("fingerprint")
        if fingerprint is not None and not (isinstance(fingerprint, str) and _HEX.fullmatch(fingerprint)):
            _refuse("must be the fingerprint of a report, as a text", (*where, "fingerprint"))
        if fingerprint is None and all(glob == "*" for glob in globs.values()):
            _refuse(f"must name one of {', '.join(_NAMED)}", where)
        reason = members.get("reason")
        if not isinstance(reason, str) or not reason.strip():
            _refuse("must say why", (*where, "reason"))
        named = [f"fingerprint {fingerprint}"] if fingerprint else []
        shown = ", ".join([*(f"{key} {glob}" for key, glob in globs.items() if glob != "*"), *named])
        patterns = tuple(_pattern(glob) for glob in globs.values())
        until = members.get("until")  # which YAML may parse as a date
        if until is not None and not _DATE.fullmatch(str(until)):
            _refuse('must be a date like "2026-11-30"', (*where, "until"))
        yield Allowance(patterns, fingerprint, shown, reason, None if until is None else str(until))


def baseline(changes: Iterable[Change], *, today: str) -> dict[str, Any]:
    """A policy that allows exactly these changes."""
    entries = [
        {
            "id": change.id,
            "fingerprint": change.fingerprint,
            "reason": f"baseline of {today}: {change.location}: {change.message}",
        }
        for change in changes
    ]
    return {"allow": entries}


def _pattern(glob: str) -> re.Pattern[str]:
    parts = (".*" if mark == "*" else "." if mark == "?" else re.escape(mark) for mark in glob)
    return re.compile("".join(parts), re.DOTALL)


def _members(value: Any, where: tuple[str | int, ...], known: tuple[str, ...]) -> dict[str, Any]:
    members = _object(value, where)
    for key in members:
        if key not in known:
            _refuse(f"is not known here; known are {', '.join(known)}", (*where, str(key)))
    return members


def _object(value: Any, where: tuple[str | int, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse("must be an object", where)
    return value


def _refuse(reason: str, where: tuple[str | int, ...]) -> NoReturn:
    raise InvalidDocument(reason, pointer=pointer_to(*where))

"""The verdict on one object: what has to change before an upgrade, and what could not be checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.group_versions import split
from specmux_converters.json_values import array, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences.changes import Place, changes_of
from specmux_tools.differences.rules import ChangeSeverity
from specmux_tools.differences.served import ServedSide
from specmux_tools.kind_lifecycles import REMOVED, place_of
from specmux_tools.validation import Check, Severity, ValidationReport, Validator, Violation
from specmux_tools.validation.decoding.body import Body
from specmux_tools.validation.definitions.definition_fault import DEFINITION, objects
from specmux_tools.validation.definitions.faults import definition_faults
from specmux_tools.validation.report import Path
from specmux_tools.validation.requests import Operation


class UpgradeOutcome(StrEnum):
    READY = "ready"
    CHANGED = "changed"
    """The object stays valid, but its effect changes."""
    NOT_READY = "not-ready"
    REFUSED_BEFORE = "refused-before"
    """Its current group-version already rejects it, for the same reasons."""
    NOT_CHECKED = "not-checked"


@dataclass(frozen=True, slots=True)
class UpgradeVerdict:
    outcome: UpgradeOutcome
    report: ValidationReport
    """The target's report, reduced to violations that the upgrade introduces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeJudge:
    """The documents that serve objects now, and those of the target."""

    old: Validator
    new: Validator
    changes: Mapping[GroupVersionKind, list[Place]]
    """Changes that concern objects, by kind."""
    old_resources: frozenset[tuple[str, str]]
    new_resources: frozenset[tuple[str, str]]
    new_kinds: tuple[GroupVersionKind, ...]
    definitions: Mapping[str, Document]
    """CustomResourceDefinitions of the target, by name."""

    def verdict(self, body: Body) -> UpgradeVerdict:
        was = self.old.judge(body, Operation())
        now = self.new.judge(body, Operation())
        if now.kind is None:
            return unread(now)
        found = list(self._find_violations(body, was, now))
        if any(each.severity is Severity.ERROR for each in found):
            outcome = UpgradeOutcome.NOT_READY
        elif not (now.is_known and now.is_complete):
            outcome = UpgradeOutcome.NOT_CHECKED
            found += [each for each in now.violations if each.check is Check.NOT_CHECKED]
        elif not now.is_valid:
            outcome = UpgradeOutcome.REFUSED_BEFORE
        else:
            is_changed = any(each.severity is Severity.WARNING for each in found)
            outcome = UpgradeOutcome.CHANGED if is_changed else UpgradeOutcome.READY
        return UpgradeVerdict(outcome, replace(now, violations=tuple(found)))

    def _find_violations(
        self, body: Body, was: ValidationReport, now: ValidationReport
    ) -> Iterator[Violation]:
        assert now.kind is not None
        if not now.is_known:
            yield from body.locate([self._report_removed_kind(now.kind, is_known=was.is_known)])
            return
        told = {_without_bounds(each) for each in was.violations} if was.is_known else set()
        yield from (
            each
            for each in now.violations
            if each.severity is Severity.ERROR and _without_bounds(each) not in told
        )
        yield from body.locate([*_note_removal(now.kind), *self._find_differences(body.value, now.kind)])

    def _report_removed_kind(self, kind: GroupVersionKind, *, is_known: bool) -> Violation:
        version = kind.api_version
        place = place_of(kind, self.new_kinds)
        if not is_known and (version, kind.kind) not in REMOVED:
            text = f"{version} {kind.kind} is described neither now nor then: give its definition"
            return Violation(Severity.NOTE, Check.NOT_CHECKED, ("kind",), text)
        text = f"{version} {kind.kind} is not served any more"
        said = f"{text}: {place.text}" if place is not None else text
        return Violation(Severity.ERROR, Check.DECODING, ("apiVersion",), said)

    def _find_differences(self, value: Any, kind: GroupVersionKind) -> Iterator[Violation]:
        yield from find_changes(value, self.changes.get(kind, ()))
        if kind.group == "rbac.authorization.k8s.io" and kind.kind in ("ClusterRole", "Role"):
            yield from find_gone_resources(value, self.old_resources, self.new_resources)
        if kind == DEFINITION:
            yield from self._of_definition(value)

    def _of_definition(self, value: Mapping[str, Any]) -> Iterator[Violation]:
        """Yields what an apiserver says when the target's definition replaces this one."""
        replacement = self.definitions.get(str(within(value, "metadata").get("name")))
        if replacement is None or replacement.get("spec") == value.get("spec"):
            return
        for each in definition_faults(replacement, old=value):
            text = f"its definition after the upgrade is refused: {each.text}"
            yield Violation(Severity.ERROR, Check.DEFINITION, ("spec",), text)


def _note_removal(kind: GroupVersionKind) -> Iterator[Violation]:
    """When a kind goes that is still served after the upgrade."""
    version = kind.api_version
    removal = REMOVED.get((version, kind.kind))
    if removal is None:
        return
    text = f"Kubernetes {removal.removed} removes {version} {kind.kind}"
    if removal.now:
        text += f": {removal.now} has it" + (f" since {removal.since}" if removal.since else "")
    yield Violation(Severity.NOTE, Check.DECODING, ("apiVersion",), text)


def _without_bounds(violation: Violation) -> tuple[Check, Path, str]:
    """The fault without its bound: an object that is too large before and after stays refused."""
    message = violation.message
    if violation.check not in (Check.DECODING, Check.UNKNOWN_FIELD, Check.DUPLICATE_FIELD):
        message = _BOUNDS.sub("#", message)
    return violation.check, violation.path, message


def unread(report: ValidationReport) -> UpgradeVerdict:
    """The verdict on a text that is no object on either side."""
    found = tuple(
        replace(each, severity=Severity.NOTE, check=Check.NOT_CHECKED) for each in report.violations
    )
    return UpgradeVerdict(UpgradeOutcome.NOT_CHECKED, replace(report, violations=found))


_DEFAULTS: Final = frozenset(("default-changed", "default-added", "default-removed"))
_GONE_VALUE: Final = "enum-value-removed"
_BOUND: Final = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|-?\d[\d.]*(?:[eE][-+]?\d+)?)"""
_BOUNDS: Final = re.compile(f"{_BOUND}(?:, {_BOUND})*")
"""Numbers, quoted texts, and lists of them, as messages have them."""
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


def find_changes(value: Any, places: Iterable[Place]) -> Iterator[Violation]:
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


def resources_of(side: ServedSide) -> frozenset[tuple[str, str]]:
    """Group and plural of each resource, and of each subresource as ``pods/log``."""
    found: set[tuple[str, str]] = set()
    for name, served in side.group_versions.items():
        group, _ = split(name) or ("", "")
        for plural, resource in served.resources.items():
            found.add((group, plural))
            found |= {(group, f"{plural}/{each}") for each in resource.subresources}
    return frozenset(found)


def find_gone_resources(
    value: Mapping[str, Any], before: frozenset[tuple[str, str]], after: frozenset[tuple[str, str]]
) -> Iterator[Violation]:
    for index, rule in enumerate(objects(value.get("rules"))):
        groups, resources = (rule.get(key) for key in ("apiGroups", "resources"))
        if not (isinstance(groups, list) and isinstance(resources, list)):
            continue
        for place, plural in enumerate(resources):
            named = [(group, plural) for group in groups if (group, plural) in before]
            for group, _ in [each for each in named if each not in after]:
                path = ("rules", index, "resources", place)
                said = f"{plural} of {group or 'the core group'} is not served any more"
                text = f"rules[{index}].resources[{place}]: {said}"
                yield Violation(Severity.WARNING, Check.SCHEMA, path, text)

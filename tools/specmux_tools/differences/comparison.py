"""Compare what two sides serve: the differing places, each with its impacts.

Only the outermost change is reported: nothing within a removed resource, no fields of a new field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.changes import EVERYBODY, Direction, Judge, Place
from specmux_tools.differences.findings import ComparisonBudget, Finding, is_status, show_path
from specmux_tools.differences.manifests import root_schema
from specmux_tools.differences.operation_comparison import (
    is_documented_differently,
    is_untouched,
    operation_changes,
    plain_bodies,
)
from specmux_tools.differences.rules import RULES, Impact, Impacts
from specmux_tools.differences.schema.keywords import properties
from specmux_tools.differences.schema.schema_comparison import SchemaComparison
from specmux_tools.differences.schema.views import ComponentSchemas
from specmux_tools.differences.served import (
    OUTSIDE,
    Basis,
    Operations,
    ServedGroupVersion,
    ServedKind,
    ServedOperation,
    ServedResource,
    ServedSide,
)

_EVERY_OPERATION: Final = "operations"
"""Origin of changes that a server makes to all operations: a parameter, a media type, a response."""

_READ_BREAKS: Final = Impacts(Impact.NONE, Impact.BREAKING, Impact.NONE)
_WRITE_BREAKS: Final = Impacts(Impact.BREAKING, Impact.NONE, Impact.NONE)
_NO_IMPACTS: Final = Impacts(Impact.NONE, Impact.NONE, Impact.NONE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result: distinct places, unordered."""

    places: tuple[Place, ...]
    documentation: int
    """Number of places that differ only in documentation."""


def compare(old: ServedSide, new: ServedSide, *, basis: Basis | None = None) -> Comparison:
    """``basis``: treat all schemas like this, whatever their documents say.

    Raises LimitExceeded beyond MOST_SCHEMAS or MOST_PLACES.
    """
    comparer = _Comparer(old, new, basis)
    found: dict[Any, Place] = {}
    for place in comparer.places():
        what = repr(place.what)
        found.setdefault((place.id, place.group_version, place.kind, place.path, what, place.impacts), place)
        comparer.budget.count_places(len(found))
    return Comparison(tuple(found.values()), comparer.documentation)


class _Comparer:
    def __init__(self, old: ServedSide, new: ServedSide, basis: Basis | None) -> None:
        self.budget = ComparisonBudget()
        self.documentation = 0
        self._old = old
        self._new = new
        self._basis = basis
        self._comparisons: dict[tuple[int, int, Basis], SchemaComparison] = {}

    def places(self) -> Iterator[Place]:
        old, new = self._old.group_versions, self._new.group_versions
        for name in sorted(old.keys() | new.keys()):
            if name not in new and name is not OUTSIDE:
                yield self._place(old[name], "group-version-removed", self._group_version_gone(old[name]))
            elif name not in old and name is not OUTSIDE:
                yield self._place(new[name], "group-version-added")
            else:
                empty = ServedGroupVersion(name, Basis.DESCRIBED)
                yield from self._group_version(old.get(name, empty), new.get(name, empty))
        yield from self._stored_versions()

    def _place(
        self,
        served: ServedGroupVersion,
        change: str,
        impacts: Impacts | None = None,
        *,
        kind: str = "",
        what: Any = None,
    ) -> Place:
        judge = Judge(served.name, self._basis or served.basis)
        return judge.place(
            Finding(change, "", what=what), kind, judge.whole(impacts or RULES[change].impacts)
        )

    def _group_version_gone(self, gone: ServedGroupVersion) -> Impacts:
        """Objects stay readable if each resource is served in another version of the group."""
        impacts = RULES["group-version-removed"].impacts
        is_lost = any(
            _direction(gone, resource.kind).stored and not self._is_elsewhere(gone.name, resource.plural)
            for resource in gone.resources.values()
        )
        return impacts._replace(stored=Impact.BREAKING) if is_lost else impacts

    def _is_elsewhere(self, name: GroupVersion, plural: str) -> bool:
        group = _group(name)
        return any(
            plural in other.resources
            for key, other in self._new.group_versions.items()
            if key != name and _group(key) == group
        )

    def _stored_versions(self) -> Iterator[Place]:
        outside = ServedGroupVersion(OUTSIDE, Basis.ENFORCED)
        for key, before in self._old.stored_versions.items():
            after = self._new.stored_versions.get(key)
            if after is None:
                continue
            if before.by_webhook and not after.by_webhook and len(after.defined) > 1:
                yield self._place(outside, "conversion-removed", kind=before.kind)
            for version in sorted(before.stored - after.defined):
                yield self._place(outside, "stored-version-removed", kind=before.kind, what=version)

    def _group_version(self, old: ServedGroupVersion, new: ServedGroupVersion) -> Iterator[Place]:
        for plural in sorted(old.resources.keys() | new.resources.keys()):
            before, after = old.resources.get(plural), new.resources.get(plural)
            if before is None and after is not None:
                yield self._place(new, "resource-added", kind=after.kind)
            elif after is None and before is not None:
                yield self._resource_gone(old, before)
            elif before is not None and after is not None:
                yield from self._resource(old, new, before, after)
        yield from self._operations(old, new, old.operations, new.operations, keeps_id=True)
        for key in sorted(old.kinds.keys() & new.kinds.keys()):
            yield from self._kind(old, new, key)

    def _resource_gone(self, old: ServedGroupVersion, resource: ServedResource) -> Place:
        direction = _direction(old, resource.kind)
        is_lost = direction.stored and not self._is_elsewhere(old.name, resource.plural)
        stored = Impact.BREAKING if is_lost else Impact.NONE
        impacts = RULES["resource-removed"].impacts._replace(stored=stored)
        return self._place(old, "resource-removed", impacts, kind=resource.kind)

    def _resource(
        self, old: ServedGroupVersion, new: ServedGroupVersion, before: ServedResource, after: ServedResource
    ) -> Iterator[Place]:
        judge = Judge(new.name, self._basis or new.basis)
        direction = _direction(old, before.kind)
        for finding in self._resource_findings(old, before, after):
            yield self._at(judge, finding, before.kind, direction)
        if before.is_manifest or after.is_manifest:
            return
        is_moved = before.is_namespaced != after.is_namespaced
        keeps_id = before.kind == after.kind and not is_moved
        if not is_moved:
            yield from self._operations(old, new, before.operations, after.operations, keeps_id=keeps_id)
        for name in sorted(before.subresources.keys() & after.subresources.keys()):
            yield from self._operations(
                old,
                new,
                before.subresources[name],
                after.subresources[name],
                keeps_id=keeps_id,
                is_moved=is_moved,
            )

    def _resource_findings(
        self, old: ServedGroupVersion, before: ServedResource, after: ServedResource
    ) -> Iterator[Finding]:
        if before.kind != after.kind:
            yield Finding("kind-changed", "", old=before.kind, new=after.kind)
        if before.is_namespaced != after.is_namespaced:
            yield Finding("scope-changed", "")
        if before.is_deprecated != after.is_deprecated:
            yield Finding("deprecated" if after.is_deprecated else "undeprecated", "")
        for name in sorted(before.subresources.keys() - after.subresources.keys()):
            yield Finding("subresource-removed", "", what=name)
        if before.is_manifest and after.is_manifest:
            yield from _scale_changes(before, after)
        for name in sorted(after.subresources.keys() - before.subresources.keys()):
            if name == "status" and _has_status(old, before.kind):
                yield Finding("status-subresource-added", "")
            else:
                yield Finding("subresource-added", "", what=name)

    def _operations(
        self,
        old: ServedGroupVersion,
        new: ServedGroupVersion,
        before: Operations,
        after: Operations,
        *,
        keeps_id: bool,
        is_moved: bool = False,
    ) -> Iterator[Place]:
        for key in sorted(before.keys() - after.keys()) if not is_moved else ():
            gone = before[key]
            if old.name is OUTSIDE and self._is_of_gone_group(gone.path):
                continue
            impacts = _READ_BREAKS if gone.is_reading else _WRITE_BREAKS
            yield self._place(old, "operation-removed", impacts, kind=gone.shown_kind, what=gone.what)
        for key in sorted(after.keys() - before.keys()) if not is_moved else ():
            fresh = after[key]
            yield self._place(new, "operation-added", kind=fresh.shown_kind, what=fresh.what)
        for key in sorted(before.keys() & after.keys()):
            yield from self._operation(new, before[key], after[key], keeps_id=keeps_id)

    def _is_of_gone_group(self, path: str) -> bool:
        """Whether the path is the discovery of a group with no version left."""
        match path.strip("/").split("/"):
            case ["apis", group]:
                return any(_group(key) == group for key in self._old.group_versions) and not any(
                    _group(key) == group for key in self._new.group_versions
                )
        return False

    def _operation(
        self, group_version: ServedGroupVersion, old: ServedOperation, new: ServedOperation, *, keeps_id: bool
    ) -> Iterator[Place]:
        judge = Judge(group_version.name, self._basis or group_version.basis)
        if keeps_id and old.kind and new.kind and old.kind != new.kind:  # otherwise reported for its resource
            finding = Finding("kind-changed", "", old=old.kind, new=new.kind)
            yield self._at(judge, finding, old.kind, EVERYBODY)
        if not is_untouched(old, new):
            for finding in operation_changes(old, new, keeps_id=keeps_id and old.kind == new.kind):
                yield self._at_operation(judge, finding, old)
            self.documentation += is_documented_differently(old, new)
        comparison = self._schemas(old.schemas, new.schemas, judge.basis)
        for where, before, after in plain_bodies(old, new):
            direction = Direction(where == "request", where == "response", stored=False)
            result = comparison.compare(before, after)
            for finding in result.findings:
                moved = replace(finding, steps=where + finding.steps)
                yield self._at(judge, moved, old.shown_kind, direction)

    def _at_operation(self, judge: Judge, finding: Finding, operation: ServedOperation) -> Place:
        impacts = RULES[finding.id].impacts
        if finding.id == "response-removed" and not str(finding.what).startswith("2"):
            impacts = _NO_IMPACTS
        origin = f"{_EVERY_OPERATION}:{finding.what}" if finding.what != operation.what else ""
        return judge.place(replace(finding, origin=origin), operation.shown_kind, judge.whole(impacts))

    def _kind(
        self, old: ServedGroupVersion, new: ServedGroupVersion, key: tuple[str, str]
    ) -> Iterator[Place]:
        before, after = old.kinds[key], new.kinds[key]
        judge = Judge(new.name, self._basis or new.basis)
        is_bare = before.is_manifest or after.is_manifest
        comparison = self._schemas(before.schemas, after.schemas, judge.basis)
        result = comparison.compare(root_schema(before, is_bare=is_bare), root_schema(after, is_bare=is_bare))
        self.documentation += result.documentation
        has_status = _has_status_subresource(old, before.name) and _has_status_subresource(new, before.name)
        direction = Direction(before.is_written, before.is_read, before.is_stored)
        for finding in result.findings:
            path = show_path(finding.steps)
            if before.is_list and (path == "items" or path.startswith("items[]")):
                continue
            yield self._at(
                judge, finding, before.name, direction, is_own_status=has_status and is_status(path)
            )

    def _at(
        self,
        judge: Judge,
        finding: Finding,
        kind: str,
        direction: Direction,
        *,
        is_own_status: bool = False,
    ) -> Place:
        impacts = judge.field(finding, direction, is_own_status=is_own_status)
        if finding.id == "list-type-changed" and finding.new == "atomic":
            impacts = impacts._replace(stored=Impact.NONE)  # no object becomes invalid
        return judge.place(finding, kind, impacts)

    def _schemas(self, old: ComponentSchemas, new: ComponentSchemas, basis: Basis) -> SchemaComparison:
        key = (id(old), id(new), basis)
        if key not in self._comparisons:
            self._comparisons[key] = SchemaComparison(
                old, new, is_enforced=basis is Basis.ENFORCED, budget=self.budget
            )
        return self._comparisons[key]


def _scale_changes(before: ServedResource, after: ServedResource) -> Iterator[Finding]:
    if not before.scale_paths or not after.scale_paths:
        return
    for key in sorted(before.scale_paths.keys() | after.scale_paths.keys()):
        old, new = before.scale_paths.get(key), after.scale_paths.get(key)
        if old != new:
            impacts = None if key == "specReplicasPath" else _READ_BREAKS if old else _NO_IMPACTS
            yield Finding("scale-path-changed", "", what=key, old=old, new=new, impacts=impacts)


def _group(name: GroupVersion) -> str | None:
    found = split(name)
    return found[0] if found else None


def _kind_of(group_version: ServedGroupVersion, kind: str) -> ServedKind | None:
    return group_version.kinds.get((kind, _group(group_version.name) or ""))


def _direction(group_version: ServedGroupVersion, kind: str) -> Direction:
    """The direction of a resource's kind; a kind that no operation carries may have any."""
    found = _kind_of(group_version, kind)
    return Direction(found.is_written, found.is_read, found.is_stored) if found else EVERYBODY


def _has_status(group_version: ServedGroupVersion, kind: str) -> bool:
    found = _kind_of(group_version, kind)
    return found is not None and "status" in properties(found.schemas.view(found.schema).keywords)


def _has_status_subresource(group_version: ServedGroupVersion, kind: str) -> bool:
    return any(
        resource.kind == kind and "status" in resource.subresources
        for resource in group_version.resources.values()
    )

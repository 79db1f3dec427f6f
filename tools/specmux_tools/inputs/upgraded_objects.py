"""Objects of files and clusters, judged before an upgrade, and the verdict on each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from specmux_aggregator.console import warn
from specmux_aggregator.folders import LAYOUT
from specmux_converters.counted_nouns import counted
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, join_group_version, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences import ServedSide, compare
from specmux_tools.inputs.diff_sides import Side, side_of, side_of_source
from specmux_tools.inputs.embedded_manifests import MARKS, EmbeddedManifest, embedded_manifests
from specmux_tools.inputs.judged_objects import stored_objects, validator_of
from specmux_tools.inputs.validated_objects import Manifest, manifest_files, manifests_in
from specmux_tools.sources import SourceOptions
from specmux_tools.sources.arguments import is_path
from specmux_tools.sources.disk.git_files import PREFIX as GIT
from specmux_tools.upgrades import (
    UpgradeJudge,
    UpgradeOutcome,
    UpgradeSides,
    UpgradeVerdict,
    resources_of,
)
from specmux_tools.validation import Check, Directive, Severity, ValidationReport, Violation
from specmux_tools.validation.decoding.body import Body, flatten, is_list, is_too_deep
from specmux_tools.validation.decoding.manifests import definitions_in, group_versions_in, is_local_config
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.requests import body_format


@dataclass(frozen=True, slots=True)
class ReadSide:
    """``word`` is "" for the source that options name."""

    word: str
    side: Side


def read_side(word: str, source: SourceOptions) -> ReadSide:
    """Raises FileRefused, SpecmuxError."""
    side = side_of(word, source, group_versions=()) if word else side_of_source(source)
    return ReadSide(word, side)


def upgrade_sides(
    before: ReadSide,
    after: ReadSide,
    source: SourceOptions,
    *,
    own: Sequence[Document],
    wanted: Collection[GroupVersion] | None,
    release: str | None,
) -> UpgradeSides:
    """``own``: definitions among the objects. ``wanted``: group-versions of these; None is all."""
    old, new = (_only(each.side.served, wanted) for each in (before, after))
    return UpgradeSides(
        old=validator_of(before.word, before.side, source, own),
        new=validator_of(after.word, after.side, source, own, release=release),
        places=compare(old, new).places,
        old_resources=resources_of(before.side.served),
        new_resources=resources_of(after.side.served),
        new_kinds=tuple(_kinds(after.side.served)),
        definitions={
            str((each.document.get("metadata") or {}).get("name")): each.document
            for each in after.side.sources
            if each.is_manifest
        },
    )


def group_versions_of(inputs: Iterable[Manifest]) -> frozenset[GroupVersion]:
    return frozenset(join_group_version(*each) for item in inputs for each in group_versions_in(item.part))


def _only(served: ServedSide, wanted: Collection[GroupVersion] | None) -> ServedSide:
    if wanted is None:
        return served
    return ServedSide({name: each for name, each in served.group_versions.items() if name in wanted})


def _kinds(served: ServedSide) -> Iterable[GroupVersionKind]:
    for name, each in served.group_versions.items():
        group = split(name)
        if group is not None:
            for resource in each.resources.values():
                yield GroupVersionKind(*group, resource.kind)


CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class UpgradedObject:
    file: str
    line: int
    verdict: UpgradeVerdict

    @property
    def is_failing(self) -> bool:
        return self.verdict.outcome in (UpgradeOutcome.NOT_READY, UpgradeOutcome.NOT_CHECKED)

    def as_document(self) -> dict[str, Any]:
        head = {"file": self.file, "line": self.line, "outcome": self.verdict.outcome.value}
        return head | self.verdict.report.as_document()


class Upgrade:
    """An upgrade from ``origin`` ("": the options' own source) to ``target``."""

    def __init__(self, origin: str, target: str, source: SourceOptions, release: str | None) -> None:
        self._source = source
        self._release = release
        self._before = read_side(origin, source)
        self._after = read_side(target, source)

    def judged(self, paths: Sequence[str], *, live: bool) -> list[UpgradedObject]:
        """Raises FileRefused, SpecmuxError."""
        given = manifests_in(manifest_files(paths))
        inputs = [item for item in given if not is_local_config(item.part)]
        if local := len(given) - len(inputs):
            warn(f"{counted(local, 'object')} with config.kubernetes.io/local-config: skipped")
        definitions = definitions_in(item.part for item in inputs)
        sides = upgrade_sides(
            self._before,
            self._after,
            self._source,
            own=definitions,
            wanted=None if live or any(map(_may_embed, inputs)) else group_versions_of(inputs),
            release=self._release,
        )
        judge = UpgradeJudge(sides)
        judged = [each for item in inputs for each in _of_input(item, judge)]
        if live:
            word = self._before.word
            cluster = (
                self._source if is_path(word) or word.startswith((GIT, LAYOUT)) else self._source.at(word)
            )
            for data, media_type in stored_objects(cluster, self._before.side):
                judged += (
                    UpgradedObject(CLUSTER, 1, each)
                    for each in _verdicts(Body.receive(data, body_format(media_type)), judge)
                )
        return judged


def _of_input(item: Manifest, judge: UpgradeJudge) -> Iterator[UpgradedObject]:
    part = item.part
    for verdict in _verdicts(Body.receive(part.data, part.format), judge):
        moved = replace(verdict, report=verdict.report.move_lines(part.line))
        yield UpgradedObject(item.file, part.line + 1, moved)


def _verdicts(body: Body, judge: UpgradeJudge, *, is_embedded: bool = False) -> Iterator[UpgradeVerdict]:
    """The verdict on an object, or on each in a list."""
    for each in flatten(body):
        if not is_list(each.value) or is_too_deep(each):
            yield judge.verdict(each)
            if not is_embedded:
                yield from _within(each, judge)


def _within(body: Body, judge: UpgradeJudge) -> Iterator[UpgradeVerdict]:
    """Verdicts on the manifests within an object."""
    for embedded in embedded_manifests(body.value):
        if embedded.fault:
            fault = Violation(Severity.NOTE, Check.NOT_CHECKED, (), f"cannot be read: {embedded.fault}")
            report = replace(ValidationReport(None, Directive.STRICT), violations=(fault,))
            yield _place(UpgradeVerdict(UpgradeOutcome.NOT_CHECKED, report), embedded)
        for part in parts_of(embedded.data):
            found = Body.receive(part.data, part.format)
            yield from (_place(each, embedded) for each in _verdicts(found, judge, is_embedded=True))


def _place(verdict: UpgradeVerdict, embedded: EmbeddedManifest) -> UpgradeVerdict:
    """With the manifest named, and without lines, which are not those of the file."""
    found = tuple(
        replace(each, message=f"{each.message} (in {embedded.place})", line=None, column=None)
        for each in verdict.report.violations
    )
    return replace(verdict, report=replace(verdict.report, violations=found))


def _may_embed(item: Manifest) -> bool:
    return any(mark in item.part.data for mark in MARKS)

"""Objects of files and clusters, judged before an upgrade, and the verdict on each.

Judged, too, are the manifests within stored objects, from which the next ``helm upgrade`` or ``kubectl
apply`` starts. Helm keeps each release in a Secret or a ConfigMap: base64 of gzip of JSON, with the manifest
as text. kubectl keeps what was applied in an annotation. Either may be of a group-version that the object has
left."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from specmux_aggregator.console import warn
from specmux_aggregator.folders import LAYOUT
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.counted_nouns import counted
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, join_group_version, split
from specmux_converters.json_values import array, mapping, text, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences import ServedSide, compare
from specmux_tools.inputs.diff_sides import side_of, side_of_source
from specmux_tools.inputs.judged_objects import stored_objects, validator_of
from specmux_tools.inputs.validated_objects import Manifest, manifest_files, manifests_in
from specmux_tools.sources import SourceOptions
from specmux_tools.sources.open_source import is_path
from specmux_tools.sources.options import GIT
from specmux_tools.upgrades import (
    UpgradeJudge,
    UpgradeOutcome,
    UpgradeVerdict,
    by_kind,
    resources_of,
)
from specmux_tools.validation import Check, Directive, Severity, ValidationReport, Violation
from specmux_tools.validation.decoding.body import Body, flatten, is_list, is_too_deep
from specmux_tools.validation.decoding.manifests import definitions_in, group_versions_in, is_local_config
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.requests import BodyFormat

CLUSTER: Final = "cluster"
"""In place of a file, for objects that are stored."""
RELEASE_MAX: Final = 32 * 1024 * 1024
"""Bytes of an unpacked release; the packed one is at most an object of etcd, 1.5 MiB."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MARKS: Final = (b"helm.sh/release", b"last-applied-configuration", b"owner")
"""One of them stands in every object that has manifests within."""
_HELM: Final = "helm.sh/release.v1"
_PAST: Final = ("superseded", "uninstalled")
"""States of releases that no upgrade starts from."""
_GZIP: Final = b"\x1f\x8b"


def _only(served: ServedSide, wanted: Collection[GroupVersion]) -> ServedSide:
    return ServedSide({name: each for name, each in served.group_versions.items() if name in wanted})


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


def judge_upgrade(
    paths: Sequence[str],
    *,
    origin: str,
    target: str,
    source: SourceOptions,
    release: str | None,
    live: bool,
) -> list[UpgradedObject]:
    """The verdicts on an upgrade from ``origin`` ("": the options' own source) to ``target``. Raises
    FileRefused, SpecmuxError."""
    before, after = (side_of(word, source) if word else side_of_source(source) for word in (origin, target))
    given = manifests_in(manifest_files(paths))
    inputs = [item for item in given if not is_local_config(item.part)]
    if local := len(given) - len(inputs):
        warn(f"{counted(local, 'object')} with config.kubernetes.io/local-config: skipped")
    own = definitions_in(item.part for item in inputs)
    old, new = before.served, after.served
    if not live and not any(mark in item.part.data for mark in MARKS for item in inputs):
        named = {join_group_version(*each) for item in inputs for each in group_versions_in(item.part)}
        old, new = _only(old, named), _only(new, named)
    judge = UpgradeJudge(
        old=validator_of(origin, before, source, own),
        new=validator_of(target, after, source, own, release=release),
        changes=by_kind(compare(old, new).places),
        old_resources=resources_of(before.served),
        new_resources=resources_of(after.served),
        new_kinds=tuple(
            GroupVersionKind(*group, resource.kind)
            for name, each in after.served.group_versions.items()
            if (group := split(name)) is not None
            for resource in each.resources.values()
        ),
        definitions={
            str(within(each.document, "metadata").get("name")): each.document
            for each in after.sources
            if each.is_manifest
        },
    )
    judged = [each for item in inputs for each in _of_input(item, judge)]
    if live:
        is_files = is_path(origin) or origin.startswith((GIT, LAYOUT))
        cluster = source if is_files else source.at(origin)
        for data in stored_objects(cluster, before):
            verdicts = _verdicts(Body.receive(data, BodyFormat.JSON), judge)
            judged += (UpgradedObject(CLUSTER, 1, each) for each in verdicts)
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


@dataclass(frozen=True, slots=True)
class EmbeddedManifest:
    place: str
    """The name in messages."""
    data: bytes
    fault: str = ""
    """Why it cannot be read."""


def embedded_manifests(value: Any) -> Iterator[EmbeddedManifest]:
    """The manifests within one object."""
    stored = mapping(value)
    is_secret = stored.get("type") == _HELM
    if is_secret or (stored.get("kind") == "ConfigMap" and _label(stored, "owner") == "helm"):
        yield from _of_release(stored, is_secret=is_secret)
    applied = text(within(stored, "metadata", "annotations").get(LAST_APPLIED))
    if applied and _is_other(applied, stored):
        yield EmbeddedManifest("its last-applied-configuration, of the next kubectl apply", applied.encode())


def _of_release(stored: Mapping[str, Any], *, is_secret: bool) -> Iterator[EmbeddedManifest]:
    packed = text(within(stored, "data").get("release"))
    metadata = mapping(stored.get("metadata"))
    named = f"{cut(text(metadata.get('namespace')) or 'default')}/{cut(_label(stored, 'name'))}"
    place = f"Helm's release {named}, revision {cut(_label(stored, 'version'))}, of the next helm upgrade"
    if not packed or _label(stored, "status") in _PAST:
        return
    try:
        data = base64.b64decode(packed, validate=True)
        if is_secret:  # Kubernetes' own base64 around Helm's
            data = base64.b64decode(data, validate=True)
        if data.startswith(_GZIP):
            data = decode_body(data, Coding.GZIP, max_bytes=RELEASE_MAX)
        elif len(data) > RELEASE_MAX:
            raise TooLarge(f"more than {RELEASE_MAX} bytes")
        release = orjson.loads(data)
    except (binascii.Error, BadCoding, TooLarge, ValueError) as error:
        yield EmbeddedManifest(place, b"", cut(str(error)))
        return
    if text(within(release, "info").get("status")) in _PAST:
        return
    for each in (release, *array(mapping(release).get("hooks"))):
        if manifest := text(mapping(each).get("manifest")):
            yield EmbeddedManifest(place, manifest.encode("utf-8", "replace"))


def _label(stored: Mapping[str, Any], name: str) -> str:
    labels = within(stored, "metadata", "labels")
    return text(labels.get(name)) or text(labels.get(name.upper()))


def _is_other(applied: str, stored: Mapping[str, Any]) -> bool:
    """Whether it is of another group-version than the object, which is judged itself."""
    try:
        value = mapping(orjson.loads(applied))
    except ValueError:
        return True
    return any(value.get(name) != stored.get(name) for name in ("apiVersion", "kind"))

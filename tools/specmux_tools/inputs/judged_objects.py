"""Objects that exist, judged under both sides of a comparison: manifests, or what a cluster stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final
from urllib.parse import quote

import orjson

from specmux_aggregator.folders import group_version_of_file
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.crd import AS_DEFINED, build
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_values import array, mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.inputs.diff_sides import Side
from specmux_tools.inputs.validated_objects import manifest_files, manifests_in
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources import SourceOptions, open_documents
from specmux_tools.sources.options import CONTEXT, GIT, KUBERNETES, release_of
from specmux_tools.sources.remote.fetching import answer_of
from specmux_tools.sources.source import FileRefused
from specmux_tools.validation import Severity, ValidationReport, Validator
from specmux_tools.validation.decoding.manifests import defined_kind, preserving_kinds

PAGE: Final = 500
"""Objects of one answer of a cluster."""
PAGES_MAX: Final = 1000
SHOWN: Final = 3


@dataclass(slots=True)
class _KindCount:
    judged: int = 0
    refused: list[str] = field(default_factory=list)
    """Each that the old side takes, and why the new one does not."""
    refused_before: int = 0
    unchecked: int = 0
    """Objects that the new side accepts, as far as they could be checked."""


def judge_objects(
    word: str, source: SourceOptions, old: tuple[str, Side], new: tuple[str, Side]
) -> tuple[list[str], int]:
    """Sentences for a report, and how many objects the change breaks. The sides have the words that name
    them.

    Raises FileRefused where no object is of a kind that a side has, SourceError.
    """
    validators = [validator_of(each, side, source) for each, side in (old, new)]
    counts: defaultdict[GroupVersionKind, _KindCount] = defaultdict(_KindCount)
    others = 0
    for data, media_type in objects_at(word, source, new[1]):
        reports = [each.validate_all(data, media_type) for each in validators]
        for was, now in zip(*reports, strict=True):
            if now.is_list:  # its items are judged each
                continue
            if now.kind is None or not (was.is_known or now.is_known):
                others += 1
                continue
            _count(counts[now.kind], was, now)
    if not counts:
        raise FileRefused(word, f"no object of a kind that is compared; {others} of others")
    notes = [note for kind in sorted(counts) for note in _notes(kind, counts[kind])]
    notes += [f"{counted(others, 'object')} in {word} of kinds that are not compared"] if others else []
    return notes, sum(len(count.refused) for count in counts.values())


def _count(count: _KindCount, was: ValidationReport, now: ValidationReport) -> None:
    count.judged += 1
    if not _is_refused(now):
        count.unchecked += not now.is_complete
        return
    if _is_refused(was):
        count.refused_before += 1
        return
    faults = [each.message for each in now.violations if each.severity is Severity.ERROR]
    reason = now.fatal or (faults[0] if faults else "its kind is gone")
    count.refused.append(f"{now.full_name or 'one without a name'}: {reason}")


def _is_refused(report: ValidationReport) -> bool:
    return not report.is_known or bool(report.fatal) or not report.is_valid


def _notes(kind: GroupVersionKind, count: _KindCount) -> Iterator[str]:
    number = len(count.refused)
    objects = counted(count.judged, "object")
    said = f"{number} of {objects} of kind {kind.kind} ({kind.group or 'core'}/{kind.version})"
    shown = list_first(count.refused, SHOWN, separator="; ")
    yield f"{said} would be refused, or lose fields" + (f": {shown}" if shown else "")
    if count.refused_before:
        yield f"{counted(count.refused_before, 'object')} of kind {kind.kind} refused before and after"
    if count.unchecked:
        said = f"{counted(count.unchecked, 'object')} of kind {kind.kind} not checked in full"
        yield f"{said}; specmux validate says why"


def validator_of(
    word: str, side: Side, source: SourceOptions, own: Sequence[Document] = (), *, release: str | None = None
) -> Validator:
    """The validator of one side: ``word`` names its source, "" the options' own. ``own``: definitions beside
    the objects, where the side has no other of the same kind. ``release``: the rules; by default those of
    the release that the word names, else of the newest."""
    manifests = [each.document for each in side.sources if each.is_manifest]
    if side.sources or word.startswith(GIT):
        documents = DocumentSet(_key_documents(side), own=build(manifests, templates=AS_DEFINED).documents)
    else:
        with open_documents(source.at(word) if word else source) as opened_source:
            documents = opened_source.load().documents
    kinds = {(each.kind.group, each.kind.kind) for each in documents}
    if release is None and word.startswith(KUBERNETES):
        release = release_of(word)
    beside = [each for each in own if defined_kind(each) not in kinds]
    if beside:
        documents = DocumentSet(
            documents.documents, own=build([*manifests, *beside], templates=AS_DEFINED).documents
        )
    return Validator(
        documents,
        preserving=preserving_kinds([*manifests, *beside]),
        definitions=[*beside, *manifests],
        release=release,
    )


def _key_documents(side: Side) -> dict[GroupVersion, Document]:
    """Documents by the group-version that their file names, or that their paths begin with."""
    found = {}
    for each in side.sources:
        if not each.is_manifest:
            named = group_version_of_file(each.file)
            paths = [str(path) for path in each.document.get("paths") or ()]
            names = [
                name
                for name in side.served.group_versions
                if name and any(path.startswith(f"/{name}/") for path in paths)
            ]
            for name in names or ([named] if named else []):
                found[name] = each.document
    return found


def objects_at(word: str, source: SourceOptions, side: Side) -> Iterator[tuple[bytes, str]]:
    """Objects with their media type."""
    if word.startswith(CONTEXT):
        yield from ((data, "application/json") for data in stored_objects(source.at(word), side))
    else:
        for item in manifests_in(manifest_files([word])):
            yield item.part.data, f"application/{item.part.format}"


def stored_objects(cluster: SourceOptions, side: Side) -> Iterator[bytes]:
    """The JSON of a cluster's stored objects, of each resource that the side has."""
    for name, plural in _resources(side):
        yield from map(orjson.dumps, _list_objects(cluster, name, plural))


def _resources(side: Side) -> Iterable[tuple[GroupVersion, str]]:
    """Each resource in one version: a cluster gives all of its objects in any."""
    chosen: dict[tuple[str, str], tuple[GroupVersion, str]] = {}
    for name, served in sorted(side.served.group_versions.items()):
        group = split(name)
        for plural, resource in served.resources.items():
            kind = served.kinds.get((resource.kind, group[0] if group else ""))
            if group is not None and kind is not None and kind.is_stored:
                chosen.setdefault((group[0], plural), (name, plural))
    return chosen.values()


def _list_objects(cluster: SourceOptions, name: GroupVersion, plural: str) -> Iterator[dict[str, Any]]:
    path = f"/{name}/{quote(plural, safe='')}?limit={PAGE}"
    following = ""
    for _ in range(PAGES_MAX):
        page = answer_of(cluster, path + following, what="an apiserver")
        kind, version = str(page.get("kind", "")).removesuffix("List"), page.get("apiVersion")
        for item in array(page.get("items")):
            if isinstance(item, dict):
                yield {"apiVersion": version, "kind": kind, **item}
        more = mapping(page.get("metadata")).get("continue")
        if not more:
            return
        following = f"&continue={quote(str(more), safe='')}"
    raise FileRefused(path, f"more than {PAGE * PAGES_MAX} objects")

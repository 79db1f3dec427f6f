"""The files of ``specmux validate``, the objects in them, and the verdict on each without ignored fields,
such as those that sops adds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from specmux_aggregator.errors import SourceError
from specmux_aggregator.http.content_codings import TooLarge
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, join_group_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import unescape
from specmux_converters.order import BUILT_IN_GROUPS
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kind_lifecycles import KindPlace, place_of
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.disk.tool_files import without_tool_files
from specmux_tools.sources.input import Input
from specmux_tools.sources.listing import MANIFESTS, inputs_at, without_kustomize
from specmux_tools.sources.options import STDIN
from specmux_tools.sources.source import FileRefused
from specmux_tools.validation import Directive, Severity, UnionAlgorithm, ValidationReport, Validator
from specmux_tools.validation.decoding.body import Body, flatten, is_list, objects_in, read
from specmux_tools.validation.decoding.json_reader import Repeats, pairs_of
from specmux_tools.validation.decoding.json_syntax import syntax_error
from specmux_tools.validation.decoding.manifests import (
    group_versions_in,
    has_only_kinds,
    is_local_config,
    is_object,
)
from specmux_tools.validation.decoding.streams import StreamPart, parts_of
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.requests import BodyFormat, Operation, PatchType
from specmux_tools.validation.stored_objects import ObjectKey, StoredMatch, StoredObjects
from specmux_tools.validation.validator import with_refused_match


class ObjectVerdict(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    NOT_CHECKED = "not-checked"
    """Nothing is wrong with what was looked at, and something was not."""
    SKIPPED = "skipped"
    NO_SCHEMA = "no-schema"
    """Its kind is not known, and that was allowed."""
    NO_OBJECT = "no-object"
    """It is no Kubernetes object, and that was allowed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of one file."""

    file: str
    """The file's name, as the user gave it; "stdin" for standard input."""
    part: StreamPart


@dataclass(frozen=True, slots=True)
class ValidatedObject:
    """One object and what came of it; lines are those of the file."""

    file: str
    line: int
    source: str
    """The template, by Helm's comment; "" without one."""
    outcome: ObjectVerdict
    report: ValidationReport

    @property
    def key(self) -> ObjectKey:
        kind = self.report.kind
        group, name = (kind.group, kind.kind) if kind else ("", "")
        return ObjectKey(group, name, self.report.namespace, self.report.name)

    @property
    def is_of_unknown_kind(self) -> bool:
        report = self.report
        return self.outcome is ObjectVerdict.INVALID and report.kind is not None and not report.is_known

    def as_document(self) -> dict[str, Any]:
        document = {"file": self.file, "line": self.line, "source": self.source, "status": self.outcome.value}
        return {name: value for name, value in document.items() if value != ""} | self.report.as_document()


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """``data`` is of every object that is given, which is stored; of an apply the objects themselves."""

    type: PatchType
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """A field of every object, or with ``kind`` (``Secret``, ``v1/Secret``) of those alone."""

    kind: str
    path: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> IgnoredField:
        """The field that ``[KIND:]/POINTER`` names. Raises ValueError."""
        kind, _, pointer = text.rpartition(":") if not text.startswith("/") else ("", "", text)
        first, *parts = pointer.split("/")
        if first or not parts or not all(parts):
            raise ValueError(f"{text!r} is no field: write /sops, or Secret:/sops")
        return cls(kind, tuple(map(unescape, parts)))

    def is_of(self, value: dict[str, Any]) -> bool:
        return self.kind in ("", value.get("kind"), f"{value.get('apiVersion')}/{value.get('kind')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions:
    """Options of the verdicts on objects."""

    directive: Directive = Directive.STRICT
    skipped: frozenset[str] = frozenset()
    """``Secret``, ``v1/Secret``, ``apps/v1/Deployment``."""
    allows_unknown_kinds: bool = False
    unions: UnionAlgorithm = UnionAlgorithm.OFF
    release: str | None = None
    """The release of Kubernetes, such as 1.34; None is the newest."""
    skips_non_objects: bool = False
    allows_unchecked: bool = False
    stored: StoredObjects | None = None
    """Stored objects that the manifests update."""
    patch: ObjectPatch | None = None
    is_strict_of_warnings: bool = False
    """A warning is an error."""
    keeps_objects: bool = False
    """Keep the objects as they would be stored."""
    ignored: tuple[IgnoredField, ...] = ()

    def skips(self, kind: GroupVersionKind | None) -> bool:
        if kind is None:
            return False
        return kind.kind in self.skipped or f"{kind.api_version}/{kind.kind}" in self.skipped


def manifest_files(paths: Iterable[str], *, ignored: re.Pattern[str] | None = None) -> list[Input]:
    """The files, and those below folders that may hold manifests, but for paths in which ``ignored`` is
    found. Raises FileRefused."""

    def is_wanted(name: str) -> bool:
        return ignored is None or not ignored.search(name)

    return [
        each
        for path in paths
        if Path(path).is_dir() or is_wanted(path)
        for each in inputs_at(path, MANIFESTS)
        if not each.is_on_disk or is_wanted(each.name)
    ]


def manifests_in(files: Iterable[Input], *, skips_tools_by_name: bool = False) -> list[Manifest]:
    """``skips_tools_by_name``: as ``by_name`` of without_tool_files. Raises FileRefused for what cannot be
    read."""
    try:
        read = without_tool_files(without_kustomize(files), by_name=skips_tools_by_name)
    except FileRefused as error:
        if isinstance(error.__cause__, TooLarge):
            raise FileRefused("", f"{error}; give its objects in several files") from error
        raise
    return [
        Manifest("stdin" if file.path == STDIN else file.name, part)
        for file in read
        for part in parts_of(file.read())
    ]


def read_stored(files: Iterable[Input], place: str, *, are_required: bool = False) -> StoredObjects:
    """The objects of all files. Raises SourceError for what cannot be read."""
    values = [_value(item.file, item.part) for item in manifests_in(files)]
    return StoredObjects(values, place, are_required=are_required)


def patch_bytes(path: str) -> bytes:
    """The JSON of a patch: as it was written, or that of a YAML document. Raises SourceError."""
    data = Input.at(Path(path)).read()
    if syntax_error(data) is None:
        return data
    parts = list(parts_of(data))
    if len(parts) != 1:
        raise SourceError(f"{path}: a patch is one document; here are {len(parts)}")
    return orjson.dumps(_value(path, parts[0]), default=float)


def object_of(item: Manifest) -> Any:
    """None for what cannot be read."""
    try:
        return read(item.part.data, item.part.format).value
    except Undecodable:
        return None


def _value(file: str, part: StreamPart) -> Any:
    try:
        return read(part.data, part.format).value
    except Undecodable as error:
        raise SourceError(f"{file}: {error.text}") from error


def check(item: Manifest, validator: Validator, rules: VerdictOptions) -> list[ValidatedObject]:
    """The objects of one document: several where it is a List."""
    if rules.skips_non_objects and _is_no_object(item):
        report = ValidationReport(None, rules.directive)
        return [ValidatedObject(item.file, item.part.line + 1, "", ObjectVerdict.NO_OBJECT, report)]
    line, source, is_skipped = item.part.line, item.part.source, is_local_config(item.part)
    checked = []
    for report in _reports(item, validator, rules):
        outcome = ObjectVerdict.SKIPPED if is_skipped else _outcome(report, rules)
        checked.append(ValidatedObject(item.file, line + 1, source, outcome, report.move_lines(line)))
    return checked


def _reports(item: Manifest, validator: Validator, rules: VerdictOptions) -> Iterable[ValidationReport]:
    # Read plainly it would be read again for its errors, with the ignored fields.
    body = Body.receive(item.part.data, item.part.format, plainly=not rules.ignored)
    if rules.patch is None:
        return [
            validator.judge_beside(without_fields(each, rules.ignored), rules.directive, rules.stored)
            for each in flatten(body)
        ]
    if rules.patch.type is PatchType.APPLY:
        if not is_list(body.value):
            return [_apply(body, validator, rules)]
        return [
            _apply(Body(orjson.dumps(each, default=float), BodyFormat.JSON, each), validator, rules)
            for each in objects_in(body.value)
        ]
    if body.fault is not None:
        return [validator.judge(body, Operation(rules.directive))]
    patch = Body(rules.patch.data, BodyFormat.JSON)
    operations = (Operation(rules.directive, each, patch=rules.patch.type) for each in objects_in(body.value))
    return [validator.judge(patch, operation) for operation in operations]


def _apply(body: Body, validator: Validator, rules: VerdictOptions) -> ValidationReport:
    """JSON is YAML, and CBOR has a media type of its own."""
    form = PatchType.APPLY_CBOR if body.format is BodyFormat.CBOR else PatchType.APPLY
    stored = rules.stored or StoredObjects((), "")
    match = stored.match(body.value) if isinstance(body.value, dict) else StoredMatch()
    report = validator.judge(body, Operation(rules.directive, match.old, patch=form))
    return with_refused_match(report, match)


def _is_no_object(item: Manifest) -> bool:
    is_template = b"{{" in item.part.data and _is_of_chart(Path(item.file).parent)
    return is_template or not is_object(item.part)


@cache
def _is_of_chart(folder: Path) -> bool:
    """Whether its files are a chart's templates."""
    return any(
        each.name == "templates" and (each.parent / "Chart.yaml").is_file()
        for each in (folder, *folder.parents)
    )


def _outcome(report: ValidationReport, rules: VerdictOptions) -> ObjectVerdict:
    if rules.skips(report.kind):
        return ObjectVerdict.SKIPPED
    if not report.is_known and rules.allows_unknown_kinds:
        return ObjectVerdict.NO_SCHEMA
    is_warned = rules.is_strict_of_warnings and any(
        each.severity is Severity.WARNING for each in report.violations
    )
    if is_warned or not report.is_valid:
        return ObjectVerdict.INVALID
    return ObjectVerdict.VALID if report.is_complete or rules.allows_unchecked else ObjectVerdict.NOT_CHECKED


def documents_for(
    inputs: Iterable[Manifest],
    own: Mapping[GroupVersion, Document],
    load: Callable[[Collection[GroupVersion]], Mapping[GroupVersion, Document]],
) -> DocumentSet:
    """The documents that the objects need: of the definitions among them, ``own``, then what is loaded. A
    group-version of ``own`` is loaded, too, for kinds that these definitions lack."""
    defined: dict[GroupVersion, set[str]] = {}
    for found in DocumentSet(own):
        if found.kind.group not in BUILT_IN_GROUPS:
            defined.setdefault(found.group_version, set()).add(found.kind.kind)
    needed = {
        name
        for item in inputs
        for each in group_versions_in(item.part)
        if not has_only_kinds(item.part, defined.get(name := join_group_version(*each), ()))
    }
    return DocumentSet(load(needed) if needed else {}, own=own)


def with_places(
    checked: Sequence[ValidatedObject], known: Callable[[], Iterable[GroupVersionKind]]
) -> tuple[list[ValidatedObject], tuple[str, ...]]:
    """The objects, those of unknown kinds with what may have been meant, and a sentence about each such
    kind. ``known``: the kinds there are, asked for where one is not known."""
    unknown = {each.report.kind: None for each in checked if each.is_of_unknown_kind and each.report.kind}
    if not unknown:
        return list(checked), ()
    kinds = list(known())
    places = {kind: place_of(kind, kinds) for kind in unknown}
    texts = {
        f"{kind.api_version} {kind.kind}: {place.text}": None
        for kind, place in places.items()
        if place is not None
    }
    return [_place(each, places) for each in checked], tuple(texts)


def _place(each: ValidatedObject, places: Mapping[GroupVersionKind, KindPlace | None]) -> ValidatedObject:
    place = places.get(each.report.kind) if each.is_of_unknown_kind and each.report.kind else None
    if place is None:
        return each
    hinted = tuple(replace(found, hint=place.name or None) for found in each.report.violations)
    return replace(each, report=replace(each.report, violations=hinted))


def counts(checked: Iterable[ValidatedObject]) -> Mapping[ObjectVerdict, int]:
    found = Counter(each.outcome for each in checked)
    return {outcome: found[outcome] for outcome in ObjectVerdict}


def without_fields(body: Body, fields: Sequence[IgnoredField]) -> Body:
    """The body as if the object were written without the fields."""
    value = body.value
    if not fields or not isinstance(value, dict):
        return body
    for field in fields:
        if field.is_of(value):
            value = _without_path(value, field.path)
    return replace(body, value=value)


def _without_path(value: Any, path: tuple[str, ...]) -> Any:
    """Values of YAML may be shared: nothing is written into them."""
    name, *below = path
    match value:
        case list() if name.isdecimal() and int(name) < len(value):
            index = int(name)
            inner = [_without_path(value[index], tuple(below))] if below else []
            return [*value[:index], *inner, *value[index + 1 :]]
        case dict() if name in value:
            if below:
                item = _without_path(value[name], tuple(below))
                return _like(value, [(key, item if key == name else each) for key, each in pairs_of(value)])
            return _like(value, [pair for pair in pairs_of(value) if pair[0] != name])
    return value


def _like(value: dict[str, Any], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return Repeats(pairs) if type(value) is Repeats else dict(pairs)

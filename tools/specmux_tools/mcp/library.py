"""Answers of the tools: values for a model to read, each bounded, with a way to ask for more.

Blocks; one question at a time. Documents are loaded when a question wants them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from specmux_converters.counted_nouns import counted
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, join_group_version
from specmux_tools.differences import ServedSide, add_document, compare
from specmux_tools.differences.reports import render, report_of
from specmux_tools.errors import InvalidPath, UnknownKind
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.kind_names import KindName, KindReference, find_kind
from specmux_tools.explanation.skeleton import skeleton
from specmux_tools.explanation.text import text
from specmux_tools.explanation.tree import find
from specmux_tools.inputs.validated_objects import (
    Manifest,
    ObjectVerdict,
    ValidatedObject,
    VerdictOptions,
    check,
    documents_for,
    with_places,
)
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.queries import validator_beside
from specmux_tools.search_index.query import found_json, search
from specmux_tools.sources.kind_lookup import kinds_of_source, known_kinds, schema_of
from specmux_tools.sources.search_index import SearchIndex
from specmux_tools.sources.source import Source
from specmux_tools.validation.decoding.streams import parts_of

ANSWER_CHARACTERS: Final = 12_000
"""Characters of a text at a time: about 3,000 tokens."""
KINDS_AT_ONCE: Final = 100
MANIFEST_CHARACTERS: Final = 1_000_000
VIOLATIONS_SHOWN: Final = 50


class Library:
    """The source may be closed after the last question only. ``against``: what ``diff`` compares with."""

    def __init__(
        self,
        source: Source,
        *,
        is_ordered: bool,
        against: Callable[[], ServedSide] | None = None,
        index: SearchIndex | None = None,
    ) -> None:
        self._source = source
        self._is_ordered = is_ordered
        self._against = against
        self._lock = threading.Lock()
        self._kinds: tuple[str, list[KindName]] | None = None
        """With the state of the source that they are of."""
        self._index = index or SearchIndex(source, None)

    def list_kinds(self, contains: str = "", group: str | None = None, offset: int = 0) -> list[str]:
        """A line for each: apiVersion, kind, plural, short names."""
        with self._now() as source:
            wanted = (contains or "").casefold()
            found = [
                each
                for each in self._all_kinds(source)
                if group in (None, each.kind.group)
                and any(wanted in name.casefold() for name in (*each.names, *each.short_names))
            ]
        shown = found[max(offset, 0) : max(offset, 0) + KINDS_AT_ONCE]
        lines = [
            " ".join((each.kind.api_version, each.kind.kind, each.names[0], *each.short_names))
            for each in shown
        ]
        return ["\n".join((counted(len(found), "kind"), *lines)), *_more(offset + len(shown), len(found))]

    def explain(self, subject: str, version: str = "", recursive: bool = False, offset: int = 0) -> list[str]:
        """Raises SchemasError, SpecmuxError."""
        with self._now() as source:
            asked, found = self._find_kind(source, subject, version)
            place = find(found.document, found.schema, asked.steps)
            told = text(found.document, asked.chosen.kind, place.names, recursive=recursive)
        also = ", ".join(f"{each.kind.api_version} {each.kind.kind}" for each in asked.others)
        return [*_cut_lines(told, offset), *([f"The same name is in: {also}"] if also else [])]

    def search(
        self, words: str, group: str | None = None, limit: int = 10, offset: int = 0
    ) -> dict[str, Any]:
        """Raises SchemasError, SpecmuxError."""
        with self._now():
            found = search(
                self._index.current(),
                words,
                limit=min(max(limit, 1), 50),
                offset=min(max(offset, 0), 1000),
                group=group,
            )
        made = found_json(found)
        end = offset + len(found.rows)
        return {**made, **({"nextOffset": end} if end < found.total else {})}

    def skeleton(self, subject: str, version: str = "") -> str:
        """Raises SchemasError, SpecmuxError."""
        with self._now() as source:
            asked, found = self._find_kind(source, subject, version)
            return _cut_lines(skeleton(found.document, asked.chosen.kind, found.schema), 0)[0]

    def validate(self, manifest: str) -> dict[str, Any]:
        """Every object in ``manifest``, YAML or JSON, with the definitions in it. Raises InvalidPath for what
        is too long or holds no object."""
        if len(manifest) > MANIFEST_CHARACTERS:
            raise InvalidPath(f"a manifest of {len(manifest)} characters; {MANIFEST_CHARACTERS} are allowed")
        data = _strip_fences(manifest).encode("utf-8", "surrogatepass")
        inputs = [Manifest("manifest", part) for part in parts_of(data)]
        if not inputs:
            raise InvalidPath("no object in the manifest")
        with self._now() as source:
            checked, places = self._judge_manifests(source, inputs)
        # A List is one of the reports; what counts is what was judged.
        objects = [{**each.report.as_document(), "valid": _is_valid(each)} for each in checked]
        left = VIOLATIONS_SHOWN
        for each in objects:
            violations = each["violations"]
            each["violations"] = violations[: max(left, 0)]
            left -= len(violations)
        told: dict[str, Any] = {"valid": all(map(_is_valid, checked)), "objects": objects}
        if left < 0:
            told["violationsLeftOut"] = -left
        return {**told, "hints": list(places)} if places else told

    def _judge_manifests(
        self, source: Source, inputs: list[Manifest]
    ) -> tuple[list[ValidatedObject], tuple[str, ...]]:
        def documents_of(own: Mapping[GroupVersion, Document]) -> DocumentSet:
            return documents_for(inputs, own, lambda needed: source.load(needed).documents.documents)

        validator = validator_beside([each.part for each in inputs], documents_of)
        checked = [each for item in inputs for each in check(item, validator, VerdictOptions())]
        return with_places(checked, lambda: validator.documents.kinds_beside(known_kinds(source)))

    def diff(self, offset: int = 0) -> list[str]:
        if self._against is None:
            raise InvalidPath("there is nothing to compare with: the server was started without --against")
        with self._now() as source:
            now = ServedSide()
            for document in source.load().documents.documents.values():
                add_document(now, document)
            found = compare(self._against(), now)
            report = report_of(found, old="before", new="now")
        return _cut_lines(render(report, "text", fail_on=None), offset)

    def document(self, group: str, version: str) -> str:
        """JSON. Raises UnknownKind for a group-version that is not there."""
        key = join_group_version("" if group == "core" else group, version)
        with self._now() as source:
            found = source.load({key}).documents.documents.get(key)
        if found is None:
            raise UnknownKind(f"no document of {key}", name=key)
        return orjson.dumps(found).decode()

    @contextmanager
    def _now(self) -> Iterator[Source]:
        """The source as it is now, for one question at a time. Raises SpecmuxError."""
        with self._lock:
            source = self._source.refresh()
            if source is not self._source:
                self._source, self._kinds = source, None
                self._index.of(source)
            yield source

    def _find_kind(self, source: Source, subject: str, version: str) -> tuple[KindReference, KindSchema]:
        subject, version = _spell_subject(subject, version)
        asked = find_kind(self._all_kinds(source), parse(subject), version=version)
        loaded = source.load({asked.chosen.group_version}, schemas_only=bool(asked.steps))
        return asked, schema_of(loaded, asked.chosen)

    def _all_kinds(self, source: Source) -> list[KindName]:
        state = source.state()
        if self._kinds is None or not state or state != self._kinds[0]:
            self._kinds = state, kinds_of_source(source, is_ordered=self._is_ordered)
        return self._kinds[1]


_FENCE: Final = re.compile(r"\s*(```+|~~~+)[^\n]*\n(.*?)(?:\n\s*\1[^\n]*\s*|\Z)", re.DOTALL)
_QUALIFIED: Final = re.compile(r"((?:[a-z0-9.-]+/)?v[0-9][a-z0-9]*)(?:/|\s+)(\S.*)")


def _strip_fences(manifest: str) -> str:
    """Without the fences of Markdown around it: models write them. Several blocks are several documents."""
    if not manifest.lstrip().startswith(("```", "~~~")):
        return manifest
    return "\n---\n".join(block[2] for block in _FENCE.finditer(manifest))


def _spell_subject(subject: str, version: str) -> tuple[str, str]:
    """``apps/v1 Deployment`` and ``Pod spec containers`` as the command wants them."""
    qualified = _QUALIFIED.fullmatch(subject.strip())
    if qualified is not None and not version:
        version, subject = qualified[1], qualified[2]
    return ".".join(subject.split()), version


def _is_valid(each: ValidatedObject) -> bool:
    return each.outcome is ObjectVerdict.VALID


def _cut_lines(told: str, offset: int) -> list[str]:
    end = max(offset, 0) + ANSWER_CHARACTERS
    return [told[max(offset, 0) : end], *_more(end, len(told))]


def _more(end: int, total: int) -> list[str]:
    return [f"nextOffset: {end}"] if end < total else []

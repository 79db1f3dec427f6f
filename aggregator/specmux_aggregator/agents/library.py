"""What the tools answer: values for a model to read, each bounded, with a way to ask for more.

Blocks; one question at a time. Documents are loaded when a question wants them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from specmux_aggregator.sources.kinds import chosen_in, kinds_of_source, loaded_for, schema_of
from specmux_aggregator.sources.search_index import SearchIndex
from specmux_aggregator.sources.source import Source
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.yaml.reader import parse_yaml_stream
from specmux_schemas.differences import Served, add_document, compare
from specmux_schemas.differences.policy import NO_POLICY
from specmux_schemas.differences.reports import render, report_of
from specmux_schemas.errors import InvalidPath, UnknownKind
from specmux_schemas.explain.kind_names import Asked, KindName
from specmux_schemas.explain.skeleton import skeleton
from specmux_schemas.explain.text import text
from specmux_schemas.explain.tree import find
from specmux_schemas.kinds import KindSchema
from specmux_schemas.resources import api_version, joined
from specmux_schemas.search.as_json import found_json
from specmux_schemas.search.query import search
from specmux_schemas.validation import Validator

ANSWER_CHARACTERS: Final = 12_000
"""Of a text at a time: about 3,000 tokens."""
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
        against: Callable[[], Served] | None = None,
        index: SearchIndex | None = None,
    ) -> None:
        self._source = source
        self._is_ordered = is_ordered
        self._against = against
        self._lock = threading.Lock()
        self._kinds: list[KindName] | None = None
        self._index = index or SearchIndex(source, None)

    def list_kinds(self, contains: str = "", group: str | None = None, offset: int = 0) -> dict[str, Any]:
        with self._lock:
            wanted = contains.casefold()
            found = [
                each
                for each in self._all_kinds()
                if group in (None, each.kind.group)
                and any(wanted in name.casefold() for name in (*each.names, *each.short_names))
            ]
        shown = found[max(offset, 0) : max(offset, 0) + KINDS_AT_ONCE]
        kinds = [
            {
                "kind": each.kind.kind,
                "apiVersion": _version(each),
                "plural": each.names[0],
                "shortNames": list(each.short_names),
            }
            for each in shown
        ]
        return {"total": len(found), "kinds": kinds, **_more(offset + len(shown), len(found))}

    def explain(
        self, subject: str, version: str = "", recursive: bool = False, offset: int = 0
    ) -> dict[str, Any]:
        """Raises SchemasError, SpecmuxError."""
        with self._lock:
            asked, found = self._asked(subject, version)
            place = find(found.document, found.schema, asked.steps)
            told = text(found.document, asked.chosen.kind, place.names, recursive=recursive)
        also = [f"{_version(each)} {each.kind.kind}" for each in asked.others]
        return {**_cut(told, offset), **({"sameNameIn": also} if also else {})}

    def search(
        self, words: str, group: str | None = None, limit: int = 10, offset: int = 0
    ) -> dict[str, Any]:
        """Raises SchemasError, SpecmuxError."""
        with self._lock:
            found = search(
                self._index.current(),
                words,
                limit=min(max(limit, 1), 50),
                offset=min(max(offset, 0), 1000),
                group=group,
            )
        made = found_json(found)
        return {**made, **_more(offset + len(found.rows), found.total)}

    def skeleton(self, subject: str, version: str = "") -> str:
        """Raises SchemasError, SpecmuxError."""
        with self._lock:
            asked, found = self._asked(subject, version)
            return str(_cut(skeleton(found.document, asked.chosen.kind, found.schema), 0)["text"])

    def validate(self, manifest: str) -> dict[str, Any]:
        """Of the first object in ``manifest``, YAML or JSON. Raises InvalidPath for what is too long."""
        if len(manifest) > MANIFEST_CHARACTERS:
            raise InvalidPath(f"a manifest of {len(manifest)} characters; {MANIFEST_CHARACTERS} are allowed")
        data = manifest.encode("utf-8", "replace")
        with self._lock:
            loaded = self._source.load(_group_versions(data))
            report = Validator(loaded.documents).validate(data, "application/yaml")
        told = report.as_document()
        violations = told.get("violations")
        if isinstance(violations, list) and len(violations) > VIOLATIONS_SHOWN:
            told["violations"] = violations[:VIOLATIONS_SHOWN]
            told["violationsLeftOut"] = len(violations) - VIOLATIONS_SHOWN
        return {"valid": report.is_valid and report.fatal is None and report.is_known, **told}

    def diff(self, offset: int = 0) -> dict[str, Any]:
        if self._against is None:
            raise InvalidPath("there is nothing to compare with: the server was started without --against")
        with self._lock:
            now = Served()
            for document in self._source.load().documents.documents.values():
                add_document(now, document)
            found = compare(self._against(), now)
            report = report_of(found, old="before", new="now", policy=NO_POLICY, today="")
        return _cut(render(report, "text", fail_on=None, coloured=False), offset)

    def document(self, group: str, version: str) -> str:
        """JSON. Raises UnknownKind for a group-version that is not there."""
        key = joined("" if group == "core" else group, version)
        with self._lock:
            found = self._source.load({key}).documents.documents.get(key)
        if found is None:
            raise UnknownKind(f"no document of {key}", name=key)
        return orjson.dumps(found).decode()

    def _asked(self, subject: str, version: str) -> tuple[Asked, KindSchema]:
        asked = chosen_in(self._all_kinds(), subject, version)
        loaded = loaded_for(self._source, (asked.chosen,))
        return asked, schema_of(loaded, asked.chosen)

    def _all_kinds(self) -> list[KindName]:
        if self._kinds is None:
            self._kinds = kinds_of_source(self._source, is_ordered=self._is_ordered)
        return self._kinds


def _group_versions(data: bytes) -> set[GroupVersion] | None:
    """The document that a manifest's first object wants; None: who knows."""
    try:
        objects = parse_yaml_stream(data)
    except ConverterError:
        return None
    first: Mapping[str, Any] = objects[0] if objects and isinstance(objects[0], dict) else {}
    version = first.get("apiVersion")
    if not isinstance(version, str):
        return None
    group, _, name = version.rpartition("/")
    return {joined(group, name)}


def _cut(told: str, offset: int) -> dict[str, Any]:
    end = max(offset, 0) + ANSWER_CHARACTERS
    return {"text": told[max(offset, 0) : end], **_more(end, len(told))}


def _more(end: int, total: int) -> dict[str, int]:
    return {"nextOffset": end} if end < total else {}


def _version(name: KindName) -> str:
    return api_version(name.kind.group, name.kind.version)

"""Make JSON Schemas of published documents. Pure; runs in the catalogue's worker process.

The shared parts of a document's schemas are cached between calls by the document's hash, within a budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.json_schema_files.requests import FileContext, SchemaSource
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.workers.built import Unencodable
from specmux_aggregator.workers.document_share import WHOLE_SHARE, DocumentShare
from specmux_aggregator.workers.documents import REFUSALS
from specmux_converters.document import Limits, parse
from specmux_converters.errors import LimitExceeded
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema import DocumentSchemas
from specmux_converters.json_schema.catalogue import index, schema_of, store_catalog, text_of
from specmux_converters.json_schema.crds import crds_yaml
from specmux_converters.json_schema.forms import DRAFT
from specmux_converters.json_schema.paths import Wanted, WholeFile
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.schema_examples import example_of

KEPT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of documents whose schemas are cached; in memory they take about ten times as much."""


@dataclass(slots=True)
class SchemaMemo:
    """Cached schemas of documents; evicts the least recently used document."""

    held: dict[tuple[GroupVersion, Hash], tuple[int, DocumentSchemas]] = field(default_factory=dict)
    slow: dict[GroupVersion, Hash] = field(default_factory=dict)
    """Documents that took more than their time, which are not tried again."""

    def schemas(self, source: SchemaSource, limits: Limits, share: DocumentShare) -> DocumentSchemas:
        """Raises ConverterError for a document that is invalid, or beyond its share."""
        key = source.group_version, source.hash
        found = self.held.pop(key, None)
        if found is None:
            found = len(source.json), self._read_schemas(source, share.within(limits), share.cpu_seconds)
        self.held[key] = found
        return found[1]

    def _read_schemas(self, source: SchemaSource, limits: Limits, seconds: float) -> DocumentSchemas:
        try:
            if self.slow.get(source.group_version) != source.hash:
                document = parse(source.json, limits=limits)
                with limited_time(seconds):
                    return DocumentSchemas(document, source.group_version, example_of)
        except QueryTooLong:
            self.slow[source.group_version] = source.hash
        raise LimitExceeded(f"{source.group_version} takes more than {seconds:g} s of processor time")

    def trim(self) -> None:
        while self.held and sum(size for size, _ in self.held.values()) > KEPT_BYTES:
            del self.held[next(iter(self.held))]


_MEMO: Final = SchemaMemo()


def json_schema(
    file: Wanted,
    sources: Sequence[SchemaSource],
    told: FileContext,
    *,
    coding: Coding,
    limits: Limits,
    share: DocumentShare = WHOLE_SHARE,
) -> bytes | Unencodable | None:
    """The file in its coding; None if the documents define nothing of that name. A file of all kinds omits
    those of a refused document, which it names."""
    found: dict[GroupVersion, DocumentSchemas] = {}
    refused: list[str] = []
    try:
        for source in sources:
            try:
                found[source.group_version] = _MEMO.schemas(source, limits, share)
            except REFUSALS:
                if not isinstance(file, WholeFile):
                    raise
                refused.append(source.group_version)
        told = replace(told, absent=(*told.absent, *refused))
        within = nullcontext() if isinstance(file, WholeFile) else limited_time(share.cpu_seconds)
        with within:
            text = next(_texts(file, found, told), None)
        return None if text is None else encoded(text, coding)
    except REFUSALS as error:
        return Unencodable(str(error))
    except QueryTooLong:
        for source in sources:  # what was interrupted is not whole
            _MEMO.held.pop((source.group_version, source.hash), None)
        return Unencodable(f"it takes more than {share.cpu_seconds:g} s of processor time")
    finally:
        _MEMO.trim()


def _texts(file: Wanted, schemas: dict[GroupVersion, DocumentSchemas], told: FileContext) -> Iterator[bytes]:
    if not isinstance(file, WholeFile) or file.what not in ("index", "catalog", "crds"):
        schema = schema_of(file, schemas)
        if schema is not None:
            yield text_of(_note_absent_kinds(schema, told) if isinstance(file, WholeFile) else schema)
    elif file.what == "crds":
        yield crds_yaml(schemas)
    elif file.what == "catalog":
        yield text_of(store_catalog(schemas, told.base))
    else:
        yield text_of({"hash": told.tree, **index(schemas, absent=told.absent)})


def _note_absent_kinds(schema: dict[str, object], told: FileContext) -> dict[str, object]:
    if not told.absent:
        return schema
    return {"$schema": DRAFT, "$comment": f"without the kinds of: {', '.join(told.absent)}", **schema}

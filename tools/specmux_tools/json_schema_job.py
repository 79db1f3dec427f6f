"""Make JSON Schemas of published documents. Pure; runs in the catalogue's worker process.

The shared parts of a document's schemas are cached between calls by the document's hash, within a budget. The
example in a kind's schema is its skeleton, if the schema accepts it unchanged: a placeholder that fails a
pattern, or an odd document, must never cost a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.reader.requests import WHOLE_SHARE, DocumentShare
from specmux_aggregator.workers.built import FileContext, SchemaSource, Unencodable
from specmux_aggregator.workers.documents import REFUSALS
from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import LimitExceeded
from specmux_converters.go.regexp import Pattern
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.catalogue import index, schema_of, store_catalog, text_of
from specmux_converters.json_schema.crds import crds_yaml
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import DRAFT, Schema
from specmux_converters.json_schema.kinds import Kind
from specmux_converters.json_schema.paths import Wanted, WholeFile
from specmux_converters.resources import GroupVersionKind
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.explanation.skeleton import skeleton
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.validation.schema.formats import find_format

KEPT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of documents whose schemas are cached; in memory they take about ten times as much."""
MAX_BYTES: Final = 16 * 1024
"""Bytes of the largest skeleton used as an example, since schemas are sent often."""

_FORMATS: Final = ("date-time", "hostname")
"""Formats that jsonschema checks only with further packages; they are checked here."""


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
        return None if text is None else encode_body(text, coding)
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
            if isinstance(file, WholeFile) and told.absent:
                comment = f"without the kinds of: {', '.join(told.absent)}"
                schema = {"$schema": DRAFT, "$comment": comment, **schema}
            yield text_of(schema)
    elif file.what == "crds":
        yield crds_yaml(schemas)
    elif file.what == "catalog":
        yield text_of(store_catalog(schemas, told.base))
    else:
        yield text_of({"hash": told.tree, **index(schemas, absent=told.absent)})


def example_of(document: Document, kind: Kind, schema: Schema) -> dict[str, Any] | None:
    """Passed to ``DocumentSchemas``."""
    subject = GroupVersionKind(kind.group, kind.version, kind.kind)
    component = document["components"]["schemas"][kind.component]
    try:
        text = skeleton(document, subject, component).encode()
        if len(text) > MAX_BYTES:
            return None
        (value,) = parse_yaml_stream(text)
        return value if _validator()(schema).is_valid(value) else None
    except Exception:  # noqa: BLE001  # jsonschema raises whatever odd keywords make its code raise
        return None


@cache
def _validator() -> Callable[[Schema], Any]:
    import jsonschema  # only the process that makes schemas needs it

    def pattern(_: Any, text: str, value: Any, __: Schema) -> Iterator[jsonschema.ValidationError]:
        """In linear time: pattern and default are as untrusted as the document."""
        if isinstance(value, str) and not Pattern(text).matches(value):
            yield jsonschema.ValidationError("does not match")

    checker = jsonschema.FormatChecker()
    for name in _FORMATS:
        checker.checks(name)(partial(_has_format, name))
    checking = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": pattern})
    return partial(checking, format_checker=checker)


def _has_format(name: str, value: object) -> bool:
    found = find_format(name)
    return found is None or not isinstance(value, str) or found.accepts(value)

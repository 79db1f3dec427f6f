"""Jobs of the reader process that answer explain and search, as bytes in a content coding.

A question that is malformed, or about something that does not exist, is answered as well: with a status code
and similar names.
"""

from __future__ import annotations

from typing import Final

import orjson

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.requests import (
    ExplainRequest,
    QuestionRefusal,
    ReaderAnswer,
    SearchRequest,
    Wants,
)
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_tools.errors import InvalidPath, SchemasError, UnknownName
from specmux_tools.explanation.field_path import Step, parse
from specmux_tools.explanation.kind_names import KindName, find_kind, names_in
from specmux_tools.explanation.skeleton import skeleton
from specmux_tools.explanation.text import plaintext, text
from specmux_tools.explanation.tree import MOST_DEPTH, as_json, find, tree_of
from specmux_tools.kinds import KindSchema, kinds_of
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.state import ReaderState
from specmux_tools.search_index.query import found_json, search

MOST_BYTES: Final = 4 * 1024 * 1024


def explain(
    state: ReaderState, request: ExplainRequest, coding: Coding
) -> ReaderAnswer | QuestionRefusal | Wants:
    document = state.document(request.hash)
    if document is None:
        return Wants((request.group_version,))
    try:
        with limited_time():
            return ReaderAnswer(encode_body(_explain_kind(document, request), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "explaining this takes too long")


def search_rows(
    request: SearchRequest, coding: Coding, state: ReaderState, version: str, incomplete: tuple[str, ...]
) -> ReaderAnswer | QuestionRefusal | Wants:
    if state.version != version:
        return Wants(None)
    try:
        with limited_time():
            found = search(
                state.index, request.query, limit=request.limit, offset=request.offset, group=request.group
            )
    except SchemasError as error:
        return refusal_of(error)
    except QueryTooLong:
        return QuestionRefusal(503, "this search takes too long; more words, or longer ones, find less")
    made = {**found_json(found), "incomplete": sorted(incomplete)}
    return ReaderAnswer(encode_body(orjson.dumps(made), coding))


def refusal_of(error: SchemasError) -> QuestionRefusal:
    match error:
        case UnknownName(similar=similar):
            more = f"; did you mean {' or '.join(similar)}?" if similar else ""
            return QuestionRefusal(404, f"{error}{more}", similar)
        case InvalidPath():
            return QuestionRefusal(400, str(error))
    return QuestionRefusal(404, str(error))


def kind_called(document: Document, group_version: GroupVersion, name: str) -> tuple[KindName, KindSchema]:
    """Raises UnknownKind."""
    schemas = {found.kind: found for found in kinds_of(document, group_version)}
    names = list(names_in(document, group_version))
    exact = [each for each in names if each.kind.kind == name]
    chosen = exact[0] if exact else find_kind(names, (Step(name),)).chosen
    return chosen, schemas[chosen.kind]


def _explain_kind(document: Document, request: ExplainRequest) -> bytes:
    name, found = kind_called(document, request.group_version, request.kind)
    place = find(document, found.schema, parse(request.path))
    levels = request.depth or 0  # 0 is all
    match request.output:
        case "skeleton":
            return skeleton(document, name.kind, found.schema).encode()
        case "text" | "plaintext" as form:
            write = text if form == "text" else plaintext
            return _cut_text(
                write(document, name.kind, place.names, recursive=request.is_recursive, max_depth=levels)
            )
    depth = request.depth or (MOST_DEPTH if request.is_recursive else 1)
    while True:
        made = orjson.dumps(as_json(document, name.kind, place.names, tree_of(document, place, depth=depth)))
        if len(made) <= MOST_BYTES or depth == 1:
            return made
        depth = min(depth // 2, 8)


def _cut_text(written_text: str) -> bytes:
    data = written_text.encode()
    if len(data) <= MOST_BYTES:
        return data
    return data[: data.rindex(b"\n", 0, MOST_BYTES) + 1] + b"(truncated)\n"

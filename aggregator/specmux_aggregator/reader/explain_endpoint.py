"""``/openapi/explain/{group-version}/{Kind}`` and ``/openapi/search``: ``specmux explain`` and ``specmux
search`` over HTTP.

A 304 follows from the hash of the document or the root and needs no reader.
"""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias
from urllib.parse import unquote

from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.prepared_answer import (
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    prepare_unstored,
    represent,
    retry_fields,
    status_reply,
)
from specmux_aggregator.http.query import BadParameters, flag, number, parameters
from specmux_aggregator.model.snapshot import SnapshotEntry
from specmux_aggregator.mounts import READER, NamedFunction
from specmux_aggregator.reader.process import Unready
from specmux_aggregator.reader.reader_client import Reading
from specmux_aggregator.reader.requests import (
    DEPTH_MAX,
    OFFSET_MAX,
    ROWS_MAX,
    ExplainRequest,
    QuestionRefusal,
    ReaderAnswer,
    SearchRequest,
    State,
    Wants,
)
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

EXPLAIN: Final = "/openapi/explain/"
SEARCH: Final = "/openapi/search/"

_Answer: TypeAlias = ReaderAnswer | QuestionRefusal | Wants
_EXPLAIN: Final[NamedFunction[[State, ExplainRequest, Coding], _Answer]] = NamedFunction(READER["explain"])
_SEARCH: Final[NamedFunction[[SearchRequest, Coding, State, str, tuple[str, ...]], _Answer]] = NamedFunction(
    READER["search"]
)

_CONTENT_TYPES: Final = {
    "json": (JSON, "json"),
    "text": ("text/plain; charset=utf-8", "text"),
    "plaintext": ("text/plain; charset=utf-8", "text"),
    "skeleton": ("application/yaml; charset=utf-8", "text"),
}


class Explain:
    """The endpoint that explains one field of one kind."""

    def __init__(self, reading: Reading, *, is_private: bool) -> None:
        self._reading = reading
        self._is_private = is_private

    def immediate(self, request: Request) -> PreparedAnswer | None:
        asked_for = self._parse_request(request)
        return (
            asked_for
            if isinstance(asked_for, PreparedAnswer)
            else evaluate_preconditions(asked_for[2], request)
        )

    async def respond(self, request: Request) -> PreparedAnswer:
        asked_for = self._parse_request(request)
        if isinstance(asked_for, PreparedAnswer):
            return asked_for
        entry, question, representation = asked_for
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        try:
            found = await self._reading.of_document(entry, _EXPLAIN, question, representation.coding)
        except Unready as error:
            return refuse(request, error, route="explain")
        return _answer(request, representation, found)

    def _parse_request(
        self, request: Request
    ) -> PreparedAnswer | tuple[SnapshotEntry, ExplainRequest, Representation]:
        key, _, kind = request.path.removeprefix(EXPLAIN).rpartition("/")
        entry = self._reading.snapshot.entries.get(GroupVersion(unquote(key)))
        if entry is None or not kind:
            return self._refuse_unknown(request)
        try:
            question = _explain_request(entry, unquote(kind), request.query)
        except BadParameters as error:
            return status_reply(400, str(error), route="explain", request=request)
        content_type, form = _CONTENT_TYPES[question.output]
        representation = represent(
            request,
            "explain",
            str(entry.key.hash),
            kind,
            content_type=content_type,
            route="explain",
            format=form,
            is_private=self._is_private,
        )
        return entry, question, representation

    def _refuse_unknown(self, request: Request) -> PreparedAnswer:
        """404, or 503 while a backend has not answered yet."""
        if not self._reading.snapshot.is_partial:
            message = "the path is /openapi/explain/GROUP-VERSION/KIND, of a group-version that is published"
            return status_reply(404, message, route="explain", request=request)
        waiting = Unready(503, "a backend that may have the document has not answered yet")
        return refuse(request, waiting, route="explain")


class Search:
    """The endpoint that searches for words."""

    def __init__(self, reading: Reading, *, is_private: bool) -> None:
        self._reading = reading
        self._is_private = is_private

    def immediate(self, request: Request) -> PreparedAnswer | None:
        asked_for = self._parse_request(request)
        return (
            asked_for
            if isinstance(asked_for, PreparedAnswer)
            else evaluate_preconditions(asked_for[1], request)
        )

    async def respond(self, request: Request) -> PreparedAnswer:
        asked_for = self._parse_request(request)
        if isinstance(asked_for, PreparedAnswer):
            return asked_for
        question, representation = asked_for
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        try:
            found = await self._reading.of_all(partial(_SEARCH, question, representation.coding))
        except Unready as error:
            return refuse(request, error, route="search")
        if self._reading.is_complete or not isinstance(found, ReaderAnswer):
            return _answer(request, representation, found)
        return prepare_unstored(representation, found.body)

    def _parse_request(self, request: Request) -> PreparedAnswer | tuple[SearchRequest, Representation]:
        if request.path.removesuffix("/") != SEARCH.removesuffix("/"):
            return status_reply(404, "the path is /openapi/search", route="search", request=request)
        try:
            question = search_request(request.query)
        except BadParameters as error:
            return status_reply(400, str(error), route="search", request=request)
        version = self._reading.version
        representation = represent(
            request, "search", version, content_type=JSON, route="search", format="json",
            is_private=self._is_private,
        )  # fmt: skip
        return question, representation


def search_request(query: str) -> SearchRequest:
    """Raises BadParameters."""
    given = parameters(query)
    words = given.get("q", "")
    limit = number(given, "limit", 20, least=1, most=ROWS_MAX)
    offset = number(given, "offset", 0, least=0, most=OFFSET_MAX)
    return SearchRequest(query=words, limit=limit, offset=offset, group=given.get("group"))


def _explain_request(entry: SnapshotEntry, kind: str, query: str) -> ExplainRequest:
    """Raises BadParameters."""
    given = parameters(query)
    output = given.get("output", "json")
    if output not in _CONTENT_TYPES:
        raise BadParameters(f"output is one of {', '.join(_CONTENT_TYPES)}")
    return ExplainRequest(
        group_version=entry.group_version,
        hash=str(entry.key.hash),
        kind=kind,
        path=given.get("path", ""),
        is_recursive=flag(given, "recursive"),
        depth=number(given, "depth", 1, least=1, most=DEPTH_MAX) if "depth" in given else None,
        output=output,  # type: ignore[arg-type]  # one of them
    )


def _answer(
    request: Request, representation: Representation, found: ReaderAnswer | QuestionRefusal
) -> PreparedAnswer:
    if isinstance(found, ReaderAnswer):
        return deliver(representation, found.body)
    return refuse(request, found, route=representation.route)


def refuse(request: Request, refused_as: QuestionRefusal | Unready, *, route: str) -> PreparedAnswer:
    """An error as Kubernetes words it; those that pass have a ``Retry-After``."""
    message = refused_as.message if isinstance(refused_as, QuestionRefusal) else str(refused_as)
    code = refused_as.code
    return status_reply(code, message, route=route, request=request, fields=retry_fields(code))

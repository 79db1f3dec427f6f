"""``/openapi/changes`` and ``/openapi/changes/{group-version}``: the change log as JSON, CBOR, text and
Markdown.

Answers are built per request; equal bytes have equal ETags. A comparison of two given documents never
changes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson

from specmux_aggregator.changes.entries import Findings, LogEntry, time_text
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.log import BEGINNING, ChangeLog, read_id
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import coding_for, media_type_for
from specmux_aggregator.http.prepared_answer import (
    FORMATS,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    not_acceptable,
    status_reply,
)
from specmux_aggregator.http.query import BadParameters, parameters
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.mounts import CHANGES_AS_TEXT, NamedFunction
from specmux_aggregator.workers.worker import Worker
from specmux_converters.change_severity import ChangeSeverity
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON, MediaType

PATH: Final = "/openapi/changes"
ROUTE: Final = "changes"
FORMAT: Final = "specmux.changes/v1"
TEXT: Final = MediaType("text/plain")
MARKDOWN: Final = MediaType("text/markdown")
OFFERED: Final = (JSON, TEXT, MARKDOWN, CBOR)
_FORMATS: Final[dict[MediaType, str]] = {**FORMATS, TEXT: "text", MARKDOWN: "text"}
_FORMS: Final = {TEXT: "text", MARKDOWN: "markdown"}
_AS_TEXT: Final[NamedFunction[[list[bytes], str], bytes]] = NamedFunction(CHANGES_AS_TEXT)

ENTRIES_MAX: Final = 100
"""Most entries of one answer; ``since`` and ``continue`` lead to the rest."""


@dataclass(frozen=True, slots=True)
class Query:
    since: int | None = None
    """None: the newest entries, else all after this one, oldest first."""
    limit: int = ENTRIES_MAX
    severity: ChangeSeverity | None = None
    hashes: tuple[Hash, Hash] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The entries of one answer."""

    entries: list[LogEntry]
    last: int
    """The id from which to continue following the log."""
    is_reset: bool = False
    """Whether earlier entries were dropped, or ``since`` belongs to another log."""
    following: int | None = None
    """``continue`` for the next page."""
    complete_since: float | None = None
    """As in ``ChangeLog``."""


class ChangesEndpoint:
    """Implements the service's ``Endpoint`` protocol."""

    def __init__(self, history: History, worker: Worker, *, is_private: bool) -> None:
        """``worker``: writes entries as text."""
        self._history = history
        self._worker = worker
        self._is_private = is_private

    def immediate(self, request: Request) -> PreparedAnswer | None:
        return None

    async def respond(self, request: Request) -> PreparedAnswer:
        media_type = media_type_for(request.accept, OFFERED)
        if media_type is None:
            return not_acceptable(OFFERED, request, route=ROUTE)
        try:
            query = read_query(request.query)
        except BadParameters as error:
            return status_reply(400, str(error), route=ROUTE, request=request)
        name = GroupVersion(request.path.removeprefix(PATH).strip("/"))
        if query.hashes is not None:
            return await self._comparison(request, name, query.hashes, media_type)
        page = page_of(self._history.log, name, query)
        if name and not page.entries and not self._history.is_published(name):
            return status_reply(404, "no such group-version is published", route=ROUTE, request=request)
        return await self._answer_page(request, media_type, page)

    async def _comparison(
        self, request: Request, name: GroupVersion, hashes: tuple[Hash, Hash], media_type: MediaType
    ) -> PreparedAnswer:
        kept = self._history.hashes(name)
        for hash in hashes:
            if hash not in kept and await self._history.document(name, hash) is None:
                known = ", ".join(kept) or "none"
                message = f"no document of this hash is kept; those of this group-version are: {known}"
                return status_reply(404, message, route=ROUTE, request=request)
        try:
            found = await self._history.comparison(name, *hashes)
        except WorkerFailed as error:
            found = str(error)
        if not isinstance(found, Findings):
            message = f"the documents cannot be compared: {found}"
            return status_reply(503, message, route=ROUTE, request=request, fields=[("Retry-After", "10")])
        body = comparison_body(name, hashes, found)
        return await self._deliver(request, media_type, [body], lambda _: body, is_immutable=True)

    async def _answer_page(self, request: Request, media_type: MediaType, page: Page) -> PreparedAnswer:
        bodies = [entry.body for entry in page.entries]
        return await self._deliver(request, media_type, bodies, partial(page_body, page))

    async def _deliver(
        self,
        request: Request,
        media_type: MediaType,
        entries: list[bytes],
        make: Callable[[bytes], bytes],
        *,
        is_immutable: bool = False,
    ) -> PreparedAnswer:
        """``make``: the JSON of the answer; of an answer as text, what surrounds the text of its entries."""
        coding = coding_for(request.accept_encoding)
        text = b""
        if media_type in (TEXT, MARKDOWN):
            try:
                text = await self._worker.run(_AS_TEXT, entries, _FORMS[media_type])
            except WorkerFailed as error:
                message = f"the changes cannot be written as text: {error}"
                fields = [("Retry-After", "10")]
                return status_reply(503, message, route=ROUTE, request=request, fields=fields)
        # Rendering and compressing take milliseconds, which would delay other clients.
        plain, body = await asyncio.to_thread(_make_body, partial(make, text), media_type, coding)
        digest = hashlib.sha256(plain).hexdigest()[:32]
        suffix = "" if coding is Coding.IDENTITY else f"-{coding.value}"
        representation = Representation(
            content_type=f"{media_type}; charset=utf-8" if media_type in (TEXT, MARKDOWN) else media_type,
            etag=ETag(f'"{digest}{suffix}"'),
            route=ROUTE,
            format=_FORMATS[media_type],
            coding=coding,
            is_immutable=is_immutable,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
        )
        return evaluate_preconditions(representation, request) or deliver(representation, body)


def read_query(query: str) -> Query:
    """Raises BadParameters. Unknown parameters are ignored: kubectl adds some to every URL."""
    values = parameters(query)
    since = _read_since(values)
    limit = values.get("limit", str(ENTRIES_MAX))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 4 and 1 <= int(limit) <= ENTRIES_MAX):
        raise BadParameters(f'"limit" must be from 1 to {ENTRIES_MAX}')
    level = values.get("severity")
    if level is not None and level.upper() not in ChangeSeverity.__members__:
        raise BadParameters('"severity" must be breaking, warning or notice')
    if ("from" in values) != ("to" in values):
        raise BadParameters('"from" and "to" belong together')
    hashes = (Hash(values["from"]), Hash(values["to"])) if "from" in values else None
    severity = None if level is None else ChangeSeverity[level.upper()]
    return Query(since, int(limit), severity, hashes)


def _read_since(values: Mapping[str, str]) -> int | None:
    """``continue`` contains the last entry of the previous page, so it is a later ``since``."""
    for name in ("continue", "since"):
        if name in values:
            try:
                return read_id(values[name])
            except ValueError as error:
                raise BadParameters(f'"{name}" must be the id of an entry') from error
    return None


def page_of(log: ChangeLog, name: GroupVersion, query: Query) -> Page:
    """Entries of one group-version; of all if none is given."""
    if query.since is None:
        entries = log.of(name, at_least=query.severity) if name else log.latest(query.severity)
        entries = entries[: query.limit] if name else entries
        return Page(entries, log.last_id, complete_since=log.complete_since)
    is_whole, after = log.since(query.since)
    if not is_whole and not after:
        _, after = log.since(BEGINNING)
    wanted = [
        entry
        for entry in after
        if (not name or entry.group_version == name) and entry.is_at_least(query.severity)
    ]
    page = wanted[: query.limit]
    following = page[-1].id if len(wanted) > len(page) else None
    return Page(page, following or log.last_id, not is_whole, following, log.complete_since)


def page_body(page: Page, text: bytes) -> bytes:
    """Entries as one answer: around ``text``, else as JSON."""
    since = None if page.complete_since is None else time_text(page.complete_since)
    if text:
        if not page.entries and since is not None:
            text = f"no changes; the log has every change since {since}\n".encode()
        before = b"reset: what came before is not known any more\n" if page.is_reset else b""
        return before + text + (b"" if page.following is None else b"more: continue=%d\n" % page.following)
    told = {"format": FORMAT, "last": page.last, "reset": page.is_reset, "completeSince": since}
    head = orjson.dumps(told)[:-1]
    more = b"" if page.following is None else b',"continue":%d' % page.following
    return b'%b%b,"entries":[%b]}' % (head, more, b",".join(entry.body for entry in page.entries))


def comparison_body(name: GroupVersion, hashes: tuple[Hash, Hash], found: Findings) -> bytes:
    return orjson.dumps(
        {
            "format": FORMAT,
            "groupVersion": name,
            "old": {"hash": hashes[0]},
            "new": {"hash": hashes[1]},
            "summary": {**found.counts, "documentation": found.documentation},
            "truncated": found.is_truncated,
            "changes": orjson.Fragment(found.changes),
        }
    )


def _make_body(make: Callable[[], bytes], media_type: MediaType, coding: Coding) -> tuple[bytes, bytes]:
    plain = make()
    if media_type == CBOR:
        from specmux_converters.codecs import cbor

        plain = cbor.encode(orjson.loads(plain))
    return plain, encode_body(plain, coding)

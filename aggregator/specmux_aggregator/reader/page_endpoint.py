"""``/openapi/ui/…``: the page for people, each part of it by its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote

from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.prepared_answer import (
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    prepare_unstored,
    represent,
)
from specmux_aggregator.http.query import BadParameters, number, parameters
from specmux_aggregator.model.snapshot import SnapshotEntry
from specmux_aggregator.mounts import READER, NamedFunction
from specmux_aggregator.reader.assets import root_from
from specmux_aggregator.reader.page_answers import (
    FIELDS,
    HTML,
    PREFIX,
    NoSuchPage,
    asset_answer,
    bare_page,
    reader_page,
    redirect,
)
from specmux_aggregator.reader.process import Unready
from specmux_aggregator.reader.reader_client import ALIGN_SECONDS, PAGE_SECONDS, JobOfAll, Reading
from specmux_aggregator.reader.requests import (
    ENTRIES_MAX,
    OFFSET_MAX,
    ROWS_MAX,
    WORDS_MAX,
    ChangesRequest,
    DocumentRequest,
    ErrorRequest,
    QuestionRefusal,
    ReaderAnswer,
    SearchRequest,
    SiteParts,
    origin_from,
)
from specmux_converters.group_versions import GroupVersion
from specmux_converters.memory import ByteBounded

_ASSETS: Final = "assets/"
_OF_KINDS: Final = ("kind", "type", "compare")
_HOME: Final[NamedFunction[..., Any]] = NamedFunction(READER["home page"])
_SEARCH: Final[NamedFunction[..., Any]] = NamedFunction(READER["search page"])
_STATUS: Final[NamedFunction[..., Any]] = NamedFunction(READER["status page"])
_VALIDATE: Final[NamedFunction[..., Any]] = NamedFunction(READER["validate page"])
_ERROR: Final[NamedFunction[..., ReaderAnswer]] = NamedFunction(READER["error page"])
_CHANGES: Final[NamedFunction[..., ReaderAnswer]] = NamedFunction(READER["changes page"])
_DOCUMENT: Final[NamedFunction[..., Any]] = NamedFunction(READER["document page"])
RENDERED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of pages as they were sent: some 50 of the largest as gzip. Making one anew is a job of the
reader."""


class LogEntryPage(Protocol):
    """An entry of the change log; it never changes, and no other has its id."""

    @property
    def id(self) -> int: ...

    @property
    def body(self) -> bytes: ...


class LoggedChanges(Protocol):
    @property
    def complete_since(self) -> float | None:
        """The time since which the log has every change; wall clock in seconds."""

    def latest(self) -> Sequence[LogEntryPage]:
        """The last entry of each group-version."""

    def of(self, group_version: GroupVersion) -> Sequence[LogEntryPage]:
        """The newest first."""


class Ui:
    """An endpoint. ``status``: the body of ``/status``; ``log``: the change log, where one is kept."""

    def __init__(
        self,
        reading: Reading,
        *,
        status: Callable[[], Awaitable[bytes]],
        log: LoggedChanges | None,
        is_private: bool,
        site: SiteParts,
    ) -> None:
        self._reading = reading
        self._log = log
        self._status = status
        self._is_private = is_private
        self._site = site
        self._rendered: ByteBounded[ETag, bytes] = ByteBounded(
            RENDERED_BYTES, size=len, max_each=RENDERED_BYTES // 8
        )

    def immediate(self, request: Request) -> PreparedAnswer | None:
        below = request.path.removeprefix(PREFIX)
        if request.path == PREFIX.removesuffix("/"):
            return redirect(request, "ui/")
        if below.startswith(_ASSETS):
            name = below.removeprefix(_ASSETS)
            return asset_answer(request, name, is_private=self._is_private)
        return None

    async def respond(self, request: Request) -> PreparedAnswer:
        ready = self.immediate(request)
        if ready is not None:
            return ready
        try:
            return await self._page(request, request.path.removeprefix(PREFIX))
        except NoSuchPage as error:
            return await self._error(request, 404, str(error), error)
        except BadParameters as error:
            return await self._error(request, 400, str(error))
        except Unready as error:
            return bare_page(request, error.code, str(error))

    async def _page(self, request: Request, below: str) -> PreparedAnswer:
        """Raises NoSuchPage, BadParameters, Unready."""
        part, _, rest = below.partition("/")
        if below == "":
            job = partial(_HOME, self._site)
            return await self._of_all(request, lambda coding: partial(job, coding), "home", PAGE_SECONDS)
        if below == "search":
            question = _search_request(request.query)
            found = partial(_SEARCH, self._site, question)
            return await self._of_all(request, lambda coding: partial(found, coding), "search")
        if below == "status":
            return await self._of_state(request, below, _STATUS, await self._status())
        if below == "validate":
            return await self._of_state(request, below, _VALIDATE)
        if part == "changes":
            return await self._changes(request, GroupVersion(unquote(rest)) if rest else None)
        if part in _OF_KINDS:
            key, _, name = rest.rpartition("/")
            return await self._of_document(request, part, unquote(key), unquote(name))
        if part == "group-version":
            return await self._of_document(request, part, unquote(rest), "")
        raise NoSuchPage(f"There is no page {below}")

    async def _of_all(
        self, request: Request, job: Callable[[Coding], JobOfAll], name: str, seconds: float = ALIGN_SECONDS
    ) -> PreparedAnswer:
        """Raises Unready."""
        representation = self._represent(request, name, self._reading.version)
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        found = await self._reading.of_all(job(representation.coding), seconds=seconds)
        return reader_page(representation, found, is_complete=self._reading.is_complete)

    async def _of_document(self, request: Request, page: str, key: str, name: str) -> PreparedAnswer:
        """Raises NoSuchPage, BadParameters, Unready."""
        entries = [self._describe_published(key)]
        if page == "compare":
            entries.append(self._describe_published(parameters(request.query).get("with", "")))
        observations = self._reading.snapshot.observations
        origins = [
            origin_from(entry, release=observations[entry.owner].backend.kubernetes) for entry in entries
        ]
        logged = self._list_logged(entries[0].group_version)
        representation = self._represent(
            request, "document", self._reading.version, request.path, str(origins), state_of(logged)
        )
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        body = self._rendered.get(representation.etag)
        if body is not None:
            return deliver(representation, body)
        question = DocumentRequest(
            page=page,
            below=request.path.removeprefix(PREFIX),
            origin=origins[0],
            name=name,
            other=origins[1] if len(origins) > 1 else None,
            entries=bodies_of(logged),
        )
        version = self._reading.version
        job = partial(_DOCUMENT, self._site, question, representation.coding)
        found = await self._reading.of_both(entries, job, seconds=PAGE_SECONDS)
        if isinstance(found, QuestionRefusal) and found.code == 404:
            kinds = [each for each in found.similar if each[:1].isupper()] or found.similar
            similar = [(each, f"kind/{key}/{each}") for each in kinds]
            raise NoSuchPage(found.message.partition("; did you mean")[0], similar)
        is_complete = self._reading.is_complete and self._reading.version == version
        if is_complete and isinstance(found, ReaderAnswer):
            self._rendered.put(representation.etag, found.body)
        return reader_page(representation, found, is_complete=is_complete)

    def _describe_published(self, key: str) -> SnapshotEntry:
        """Raises NoSuchPage."""
        found = self._reading.snapshot.entries.get(GroupVersion(key))
        if found is None:
            raise NoSuchPage(f"The group-version {key} is not published", group_version=GroupVersion(key))
        return found

    async def _of_state(
        self, request: Request, name: str, job: Callable[..., ReaderAnswer], *args: bytes
    ) -> PreparedAnswer:
        """Raises Unready."""
        representation = self._represent(request, name)
        found = await self._reading.of_state(partial(job, self._site), *args, representation.coding)
        return reader_page(representation, found, is_complete=False)

    async def _changes(self, request: Request, name: GroupVersion | None) -> PreparedAnswer:
        """Raises NoSuchPage, Unready."""
        entries = self._list_logged(name)
        is_published = name in self._reading.snapshot.entries
        if name is not None and not entries and not is_published:
            self._describe_published(name)
        since = None if self._log is None else self._log.complete_since
        state = str(is_published), str(since), state_of(entries)
        representation = self._represent(request, "changes", name or "", *state)
        ready = evaluate_preconditions(representation, request)
        if ready is not None:
            return ready
        question = ChangesRequest(
            entries=bodies_of(entries) or (),
            complete_since=since,
            group_version=name,
            is_published=is_published,
        )
        found = await self._reading.of_state(partial(_CHANGES, self._site), question, representation.coding)
        return reader_page(representation, found, is_complete=True)

    async def _error(
        self, request: Request, code: int, message: str, missing: NoSuchPage | None = None
    ) -> PreparedAnswer:
        """In the frame, or bare where that cannot be had."""
        wrong = None if missing is None else missing.group_version
        question = ErrorRequest(
            root=root_from(request.path.removeprefix(PREFIX)),
            code=code,
            message=message,
            similar=() if missing is None else missing.similar,
            group_version=wrong,
            published=() if wrong is None else tuple(self._reading.snapshot.entries),
        )
        representation = self._represent(request, "error")
        try:
            found = await self._reading.of_state(partial(_ERROR, self._site), question, representation.coding)
        except Unready:
            return bare_page(request, code, message)
        return prepare_unstored(representation, found.body, code)

    def _list_logged(self, name: GroupVersion | None) -> Sequence[LogEntryPage] | None:
        """The entries of the log on a page: of one group-version, or the last entry of each."""
        if self._log is None:
            return None
        return self._log.latest() if name is None else self._log.of(name)[:ENTRIES_MAX]

    def _represent(self, request: Request, *what: str) -> Representation:
        return represent(
            request, "ui", *what, content_type=HTML, route="ui", format="html",
            is_private=self._is_private, fields=FIELDS,
        )  # fmt: skip


def _search_request(query: str) -> SearchRequest:
    """Raises BadParameters. No words are asked for no rows."""
    given = parameters(query)
    words = given.get("q", "").strip()[: WORDS_MAX + 1]
    limit = number(given, "limit", 20, least=1, most=ROWS_MAX)
    offset = number(given, "offset", 0, least=0, most=OFFSET_MAX)
    return SearchRequest(query=words, limit=limit, offset=offset)


def bodies_of(entries: Sequence[LogEntryPage] | None) -> tuple[bytes, ...] | None:
    return None if entries is None else tuple(entry.body for entry in entries)


def state_of(entries: Sequence[LogEntryPage] | None) -> str:
    """The log's part of an ETag."""
    return "off" if entries is None else ",".join(str(entry.id) for entry in entries)

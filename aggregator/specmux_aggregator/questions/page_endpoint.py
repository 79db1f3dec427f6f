"""``/openapi/ui/…``: the page for people. Its frames carry a policy under which nothing foreign is loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol
from urllib.parse import unquote

from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.prepared import PreparedAnswer, prepare
from specmux_aggregator.http.representations import (
    NO_STORE,
    Representation,
    delivered,
    settled,
)
from specmux_aggregator.model.snapshot import SnapshotEntry
from specmux_aggregator.questions.answers import QuestionRefusal, ReaderAnswer, SearchRequest
from specmux_aggregator.questions.change_pages import ENTRIES_MAX, ChangesRequest, changes_page
from specmux_aggregator.questions.frames import Asset, assets, error_page
from specmux_aggregator.questions.pages import KindRequest, home, kind_page, search_page, status_page
from specmux_aggregator.questions.reading import (
    BadParameters,
    JobOfAll,
    Reading,
    Unready,
    number,
    parameters,
    represented,
)
from specmux_aggregator.questions.state import ReaderState, Wants
from specmux_converters.byte_bounded import ByteBounded
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.search_index.query import MOST_OFFSET, MOST_ROWS
from specmux_schemas.search_index.words import MOST_CHARACTERS

PREFIX: Final = "/openapi/ui/"
_ASSETS: Final = "assets/"
_KIND: Final = "kind/"
_CHANGES: Final = "changes"
RENDERED_BYTES: Final = 4 * 1024 * 1024
"""Of pages as they were sent: some 50 of the largest as gzip. Making one anew is a job of the reader."""
HTML: Final = "text/html; charset=utf-8"

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{each}-src 'self'" for each in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
FIELDS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)


class LogEntryPage(Protocol):
    """An entry of the change log; it never changes, and no other has its id."""

    @property
    def id(self) -> int: ...

    @property
    def body(self) -> bytes: ...


class LoggedChanges(Protocol):
    def latest(self) -> Sequence[LogEntryPage]:
        """The last entry of each group-version."""

    def of(self, group_version: GroupVersion) -> Sequence[LogEntryPage]:
        """The newest first."""


class Ui:
    """An endpoint. ``status``: the body of ``/status``; ``log``: the change log, where one is kept.
    ``has_swagger``: whether Swagger UI is there to lead to."""

    def __init__(
        self,
        reading: Reading,
        *,
        status: Callable[[], Awaitable[bytes]],
        log: LoggedChanges | None,
        is_private: bool,
        has_swagger: bool,
    ) -> None:
        self._reading = reading
        self._log = log
        self._status = status
        self._is_private = is_private
        self._has_swagger = has_swagger
        self._rendered: ByteBounded[ETag, bytes] = ByteBounded(
            RENDERED_BYTES, size=len, max_each=RENDERED_BYTES // 8
        )
        self._assets = {asset.name: asset for asset in assets().values()}

    def immediate(self, request: Request) -> PreparedAnswer | None:
        below = request.path.removeprefix(PREFIX)
        if request.path == PREFIX.removesuffix("/"):
            return redirect(request, "ui/")
        if below.startswith(_ASSETS):
            return self._asset(request, below.removeprefix(_ASSETS))
        return None

    async def respond(self, request: Request) -> PreparedAnswer:
        ready = self.immediate(request)
        if ready is not None:
            return ready
        below = request.path.removeprefix(PREFIX)
        try:
            if below == "":
                leads = self._log is not None, self._has_swagger
                return await self._of_all(request, partial(partial, _home, *leads), "home", str(leads))
            if below == "search":
                question = _search_request(request.query)
                return await self._of_all(
                    request, lambda coding: partial(_search, question, coding), "search"
                )
            if below == "status":
                return await self._status_page(request)
            if below == _CHANGES:
                return await self._changes(request, None)
            if below.startswith(f"{_CHANGES}/"):
                return await self._changes(request, GroupVersion(unquote(below[len(_CHANGES) + 1 :])))
            if below.startswith(_KIND):
                return await self._kind(request, below.removeprefix(_KIND))
        except BadParameters as error:
            return page_error(request, 400, str(error))
        except Unready as error:
            return page_error(request, error.code, str(error))
        return page_error(request, 404, "There is no such page.")

    async def _of_all(
        self, request: Request, job: Callable[[Coding], JobOfAll], name: str, hash: str = ""
    ) -> PreparedAnswer:
        """Raises Unready."""
        representation = self._represented(request, name, self._reading.version, hash)
        ready = settled(representation, request)
        if ready is not None:
            return ready
        found = await self._reading.of_all(job(representation.coding))
        return _answered(request, representation, found, is_complete=self._reading.is_complete)

    async def _kind(self, request: Request, below: str) -> PreparedAnswer:
        """Raises Unready."""
        key, _, kind = below.rpartition("/")
        entry = self._reading.snapshot.entries.get(GroupVersion(unquote(key)))
        if entry is None or not kind:
            return page_error(request, 404, f"No group-version {unquote(key)} is published.")
        question = KindRequest(
            group_version=entry.group_version,
            hash=str(entry.key.hash),
            kind=unquote(kind),
            entries=_bodies(self._logged(entry.group_version)),
        )
        return await self._with_document(request, entry, question)

    async def _with_document(
        self, request: Request, entry: SnapshotEntry, question: KindRequest
    ) -> PreparedAnswer:
        """Raises Unready."""
        state = _state_of(self._logged(entry.group_version))
        representation = self._represented(request, "kind", self._reading.version, request.path, state)
        ready = settled(representation, request)
        if ready is not None:
            return ready
        body = self._rendered.get(representation.etag)
        if body is not None:
            return delivered(representation, body)
        version = self._reading.version
        found = await self._reading.of_both(entry, partial(_kind_page, question, representation.coding))
        is_complete = self._reading.is_complete and self._reading.version == version
        if is_complete and isinstance(found, ReaderAnswer):
            self._rendered.put(representation.etag, found.body)
        return _answered(request, representation, found, is_complete=is_complete)

    async def _status_page(self, request: Request) -> PreparedAnswer:
        """Raises Unready."""
        representation = self._represented(request, "status")
        found = await self._reading.of_state(
            status_page, await self._status(), representation.coding, is_logged=self._log is not None
        )
        return _answered(request, representation, found, is_complete=False)

    async def _changes(self, request: Request, name: GroupVersion | None) -> PreparedAnswer:
        """Raises Unready."""
        entries = self._logged(name)
        is_published = name in self._reading.snapshot.entries
        if name is not None and not entries and not is_published:
            return page_error(request, 404, f"No group-version {name} is published.")
        representation = self._represented(
            request, "changes", name or "", str(is_published), _state_of(entries)
        )
        ready = settled(representation, request)
        if ready is not None:
            return ready
        question = ChangesRequest(entries=_bodies(entries), group_version=name, is_published=is_published)
        found = await self._reading.of_state(changes_page, question, representation.coding)
        return _answered(request, representation, found, is_complete=True)

    def _logged(self, name: GroupVersion | None) -> Sequence[LogEntryPage] | None:
        """What a page has of the log: of one group-version, or the last entry of each."""
        if self._log is None:
            return None
        return self._log.latest() if name is None else self._log.of(name)[:ENTRIES_MAX]

    def _represented(self, request: Request, *what: str) -> Representation:
        return represented(
            request, "ui", *what, content_type=HTML, route="ui", format="html",
            is_private=self._is_private, fields=FIELDS,
        )  # fmt: skip

    def _asset(self, request: Request, name: str) -> PreparedAnswer:
        asset: Asset | None = self._assets.get(name)
        if asset is None:
            return page_error(request, 404, "There is no such file.")
        representation = Representation(
            content_type=asset.content_type,
            etag=ETag(f'"{name}"'),
            route="ui",
            format="text",
            is_immutable=True,
            is_private=self._is_private,
            is_head=request.method == "HEAD",
            fields=FIELDS[1:2],
        )
        return settled(representation, request) or delivered(representation, asset.body)


def redirect(request: Request, location: str) -> PreparedAnswer:
    """To a page below; relative, so that it holds behind any prefix."""
    is_head = request.method == "HEAD"
    return prepare(302, [("Location", location), NO_STORE], is_head=is_head, route="ui")


def _home(
    is_logged: bool,
    has_swagger: bool,
    coding: Coding,
    state: ReaderState,
    version: str,
    missing: tuple[str, ...],
) -> ReaderAnswer | Wants:
    return home(state, version, missing, coding, is_logged=is_logged, has_swagger=has_swagger)


def _search(
    question: SearchRequest, coding: Coding, state: ReaderState, version: str, missing: tuple[str, ...]
) -> ReaderAnswer | Wants:
    return search_page(state, version, missing, question, coding)


def _kind_page(
    question: KindRequest, coding: Coding, state: ReaderState, version: str, missing: tuple[str, ...]
) -> ReaderAnswer | QuestionRefusal | Wants:
    return kind_page(state, version, missing, question, coding)


def _bodies(entries: Sequence[LogEntryPage] | None) -> tuple[bytes, ...] | None:
    return None if entries is None else tuple(entry.body for entry in entries)


def _state_of(entries: Sequence[LogEntryPage] | None) -> str:
    """What an ETag has of the log."""
    return "off" if entries is None else ",".join(str(entry.id) for entry in entries)


def _search_request(query: str) -> SearchRequest:
    """Raises BadParameters. No words are asked for no rows."""
    given = parameters(query)
    words = given.get("q", "").strip()[: MOST_CHARACTERS + 1]
    limit = number(given, "limit", 20, least=1, most=MOST_ROWS)
    offset = number(given, "offset", 0, least=0, most=MOST_OFFSET)
    return SearchRequest(query=words, limit=limit, offset=offset)


def _answered(
    request: Request,
    representation: Representation,
    found: ReaderAnswer | QuestionRefusal,
    *,
    is_complete: bool,
) -> PreparedAnswer:
    if isinstance(found, QuestionRefusal):
        return page_error(request, found.code, found.message)
    if is_complete:
        return delivered(representation, found.body)
    coding = (
        [("Content-Encoding", representation.coding.value)] if representation.coding != "identity" else []
    )
    return prepare(
        200,
        [("Content-Type", HTML), NO_STORE, *FIELDS, *coding],
        found.body,
        is_head=representation.is_head,
        route="ui",
        format="html",
    )


def page_error(request: Request, code: int, message: str) -> PreparedAnswer:
    again = [("Retry-After", "1")] if code in (429, 503) else []
    return prepare(
        code,
        [("Content-Type", HTML), NO_STORE, *FIELDS, *again],
        error_page(code, message),
        is_head=request.method == "HEAD",
        route="ui",
        format="html",
    )

"""Answers requests: decisions by ``openapi`` and ``discovery``, bytes from ``documents``, freshness from the
refreshers; other paths by their endpoints.

``immediate`` answers what is in memory, nearly everything; ``respond`` does the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.api_discovery.encoded_directory import CORE_PATH, GROUPS_PATH, PendingAnswer
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.deltas import Deltas
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import CodedBody, Representations
from specmux_aggregator.endpoints.discovery import decide as discover
from specmux_aggregator.endpoints.not_found import (
    FIRST_LOOK_STEP,
    answer_looking,
    answer_silent,
    answer_unavailable,
)
from specmux_aggregator.endpoints.openapi import (
    DOCUMENT_PREFIX,
    Decision,
    Deliver,
    Revalidate,
    decide,
)
from specmux_aggregator.endpoints.routes import Route, RouteTable
from specmux_aggregator.http.dictionaries import OfferedDictionary, by_dictionary, offered_dictionary
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.negotiation import ELEMENTS_MAX, LIST_MAX, MEDIA_TYPES, overlong_list
from specmux_aggregator.http.prepared_answer import (
    CacheStatus,
    PreparedAnswer,
    Representation,
    deliver,
    evaluate_preconditions,
    status_reply,
    with_field,
)
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.document_urls import ROOT_PATH
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.server.protocols import Pending
from specmux_aggregator.upstream.client import MovedDocument
from specmux_aggregator.workers.built import Unencodable
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import MediaType

ATTEMPTS: Final = 3
"""Attempts per request, if the document changes while it is fetched."""

UNTRIED: Final = Failure(Cause.INTERNAL, "")

PARTIAL: Final = "Specmux-Partial"
"""The field that marks a list as incomplete: backends have not answered since the start."""

DICTIONARY_RETRY: Final = 1.0
"""Seconds after which a dictionary that was unknown is looked for again."""

REVALIDATE_TIMEOUT: Final = 5.0
"""Seconds for which a client with an unknown hash waits until the owner was asked; then it gets what is
known."""


@dataclass(frozen=True, slots=True)
class PendingDocument(Pending):
    """A document whose bytes are not in memory."""

    snapshot: Snapshot
    """The snapshot of the decision."""
    decision: Deliver


class Service:
    """Answers requests from the current Snapshot. Implements the server's ``Responder`` protocol."""

    def __init__(
        self,
        publisher: Publisher,
        representations: Representations,
        documents: DocumentRepository,
        *,
        refresher_of: Callable[[BackendName], Refresher | None],
        routes: RouteTable,
        discovery: DiscoveryWatch | None = None,
        is_private: bool = False,
        first_look: FirstLook | None = None,
        deltas: Deltas | None = None,
    ) -> None:
        """``first_look``: the first check of backends; None: it is over. ``routes``: everything except
        documents, their root and discovery. ``is_private``: no shared cache may store an answer. ``deltas``:
        None compresses nothing by a dictionary."""
        self._publisher = publisher
        self._representations = representations
        self._documents = documents
        self._refresher_of = refresher_of
        self._routes = routes
        self._discovery = discovery
        self._is_private = is_private
        self._first_look = first_look
        self._deltas = deltas
        self.moved = 0
        """Number of documents that their owner replaced between its root and the download."""

    @property
    def generation(self) -> int:
        """Rises whenever an earlier answer may have become invalid."""
        discovery = self._discovery.generation if self._discovery is not None else 0
        return self._publisher.current.generation + discovery + self._representations.evicting_rounds

    def immediate(self, request: Request) -> PreparedAnswer | Pending:
        """The answer, if it is in memory."""
        overlong = _overlong(request)
        if overlong is not None:
            return overlong
        route = self._route_of(request.path)
        if route is not None:
            return route.refusal(request) or route.endpoint.immediate(request) or Pending(request)
        snapshot = self._publisher.current
        decision = self._decide(snapshot, request)
        match decision:
            case PreparedAnswer():
                return self._mark_partial(decision, request)
            case Deliver(key, media_type, representation):
                if self._deltas is not None and (dictionary := _offer(request, representation)):
                    delta = self._deltas.find(key, media_type, dictionary)
                    if delta:
                        return _compress(request, representation, dictionary, delta)
                    if delta is None:
                        return PendingDocument(request, snapshot, decision)
                body = self._representations.get(key, media_type, representation.coding)
                if body is None:
                    return PendingDocument(request, snapshot, decision)
                answer = self._mark_partial(deliver(representation, body), request)
                # Another dictionary may be known soon, without another generation.
                return _for_now(answer) if representation.varies_by_dictionary else answer
            case Revalidate() | PendingAnswer():
                return Pending(request)

    async def respond(self, pending: Pending) -> PreparedAnswer:
        """The answer after a check of a backend, a download or an encoding."""
        request = pending.request
        route = self._route_of(request.path)
        if route is not None:
            return route.refusal(request) or await route.endpoint.respond(request)
        return self._mark_partial(await self._answer(pending), request)

    async def _answer(self, pending: Pending) -> PreparedAnswer:
        request = pending.request
        failure = UNTRIED
        known = self._recall_decision(pending)
        for _ in range(ATTEMPTS):
            decision, known = known or await self._decide_document(request), None
            if isinstance(decision, Revalidate):
                checked = await asyncio.gather(
                    *(self._check(owner, is_unknown=decision.is_unknown) for owner in decision.owners)
                )
                decision = await self._decide_document(request, is_revalidated=True)
                is_missing = isinstance(decision, PreparedAnswer) and decision.status == 404
                if is_missing and not all(checked):
                    return answer_silent(request)
            if isinstance(decision, PreparedAnswer):
                return decision
            assert isinstance(decision, Deliver)  # nothing is checked twice
            started = time.monotonic()
            is_kept = await self._documents.is_kept(decision.key, decision.media_type)
            representation = decision.representation
            obtained = await self._documents.obtain(decision.key, decision.media_type, representation.coding)
            match obtained:
                case bytes():
                    status = None if is_kept else CacheStatus.ASKED
                    return await self._deliver(request, decision, obtained, status)
                case Unencodable():
                    continue
                case MovedDocument():
                    self.moved += 1
                    failure = Failure(Cause.REDIRECTED, "its document changes faster than its root")
                case Failure():
                    failure = obtained
                    self._stir(decision.key.owner)
            # The document did not match the owner's root; read the root again before the next attempt.
            is_contradiction = isinstance(obtained, MovedDocument) or failure.cause is Cause.NOT_FOUND
            await self._revalidate(decision.key.owner, newer_than=started if is_contradiction else None)
            if self._is_current(decision.key):
                break
        return answer_unavailable(failure, request, retry_after=self._retry_after(request, failure))

    async def _deliver(
        self, request: Request, decision: Deliver, body: bytes, status: CacheStatus | None
    ) -> PreparedAnswer:
        """The document, as its difference from the client's if that can be had soon. ``status``: as in
        ``deliver``."""
        representation = decision.representation
        dictionary = _offer(request, representation)
        if self._deltas is not None and dictionary is not None:
            coded = CodedBody(representation.coding, body)
            delta = await self._deltas.make(decision.key, decision.media_type, dictionary, coded)
            if delta:
                asked = representation if status is None else replace(representation, cache_status=status)
                return _compress(request, asked, dictionary, delta)
        return deliver(representation, body, status)

    def _recall_decision(self, pending: Pending) -> Deliver | None:
        """The decision made on arrival, if nothing was published since."""
        if isinstance(pending, PendingDocument) and pending.snapshot is self._publisher.current:
            return pending.decision
        return None

    async def _decide_document(self, request: Request, *, is_revalidated: bool = False) -> Decision:
        """The result of ``_decide``, after building the discovery that it needs."""
        decision = self._decide(self._publisher.current, request, is_revalidated=is_revalidated)
        if not isinstance(decision, PendingAnswer):
            return decision
        assert self._discovery is not None
        await self._discovery.make(decision)
        # Use the same index: a later one may not be built yet.
        answer = discover(decision.index, request, is_private=self._is_private)
        assert isinstance(answer, PreparedAnswer)
        return answer

    def _route_of(self, path: str) -> Route | None:
        is_core = path == ROOT_PATH or path.startswith(DOCUMENT_PREFIX)  # the hot paths skip the table
        return None if is_core else self._routes.find(path)

    def _decide(
        self, snapshot: Snapshot, request: Request, *, is_revalidated: bool = False
    ) -> Decision | PendingAnswer:
        if request.path == ROOT_PATH and not snapshot.entries and self._is_unknown(snapshot):
            return answer_looking(request, now=time.monotonic())
        decision: Decision | PendingAnswer | None = decide(
            snapshot,
            request,
            offered=self._list_offered,
            vouched_until=self._vouched_after_check if is_revalidated else self._vouched_until,
            is_checked=is_revalidated,
            is_private=self._is_private,
            has_dictionaries=self._deltas is not None,
        )
        is_missing = isinstance(decision, PreparedAnswer) and decision.status == 404
        if is_missing and self._first_look is not None and self._first_look.runs():
            return answer_looking(request, now=time.monotonic())  # some backends are not known yet
        if decision is None and self._discovery is not None:
            decision = discover(self._discovery.index, request, is_private=self._is_private)
            is_missing = isinstance(decision, PreparedAnswer) and decision.status == 404
            if is_missing and any(
                each.failure and not each.attempted for each in snapshot.observations.values()
            ):
                return answer_looking(request, now=time.monotonic())
        if decision is None:
            return status_reply(
                404, "the server could not find the requested resource", route="other", request=request
            )
        return decision

    def _is_unknown(self, snapshot: Snapshot) -> bool:
        """Whether an absent document may exist at a backend that has not answered yet."""
        failing = any(each.failure and not each.offers for each in snapshot.observations.values())
        return failing or (self._first_look is not None and self._first_look.is_pending())

    def _mark_partial(self, answer: PreparedAnswer, request: Request) -> PreparedAnswer:
        """Mark a list as incomplete and name the missing backends while some have not answered."""
        look = self._first_look
        if look is not None and not look.is_pending():
            look = self._first_look = None  # it is over for good
        if look is None or answer.status not in (200, 304):
            return answer
        if request.path.removesuffix("/") not in (ROOT_PATH, CORE_PATH, GROUPS_PATH):
            return answer
        until = time.monotonic() + FIRST_LOOK_STEP
        return with_field(answer, PARTIAL, look.name_missing(), good_until=until)

    def _list_offered(self, key: DocumentKey) -> tuple[MediaType, ...]:
        if not self._representations.has_refusals:
            return MEDIA_TYPES
        return tuple(item for item in MEDIA_TYPES if self._representations.refusal_of(key, item) is None)

    def _vouched_until(self, owner: BackendName) -> float | None:
        refresher = self._refresher_of(owner)
        return refresher.vouched_until if refresher is not None else None

    def _vouched_after_check(self, owner: BackendName) -> float:
        """Monotonic seconds until which the known offers count after a check, however long it took and
        whatever its result."""
        until = self._vouched_until(owner)
        return time.monotonic() if until is None else until

    async def _check(self, owner: BackendName, *, is_unknown: bool) -> bool:
        if is_unknown and (until := self._vouched_until(owner)) is not None:
            # A check before the request proves nothing: another replica may have checked later.
            await asyncio.sleep(until - time.monotonic())
        return await self._revalidate(owner)

    async def _revalidate(self, owner: BackendName, *, newer_than: float | None = None) -> bool:
        """False if its check takes longer than REVALIDATE_TIMEOUT."""
        refresher = self._refresher_of(owner)
        if refresher is None:
            return True
        return await refresher.revalidate(timeout=REVALIDATE_TIMEOUT, newer_than=newer_than)

    def _stir(self, owner: BackendName) -> None:
        refresher = self._refresher_of(owner)
        if refresher is not None and refresher.observation.failure is not None:
            refresher.stir()

    def _is_current(self, key: DocumentKey) -> bool:
        entry = self._publisher.current.entries.get(key.group_version)
        return entry is not None and entry.key == key

    def _retry_after(self, request: Request, failure: Failure) -> float:
        if failure.retry_after is not None:
            return failure.retry_after
        snapshot = self._publisher.current
        entry = snapshot.entries.get(GroupVersion(request.path.removeprefix(DOCUMENT_PREFIX)))
        refresher = self._refresher_of(entry.owner) if entry is not None else None
        return refresher.check.next_delay if refresher is not None else 1.0


def _offer(request: Request, representation: Representation) -> OfferedDictionary | None:
    return offered_dictionary(request) if representation.varies_by_dictionary else None


def _compress(
    request: Request, representation: Representation, dictionary: OfferedDictionary, delta: bytes
) -> PreparedAnswer:
    representation = by_dictionary(representation, dictionary)
    return evaluate_preconditions(representation, request) or deliver(representation, delta)


def _for_now(answer: PreparedAnswer) -> PreparedAnswer:
    return replace(answer, good_until=time.monotonic() + DICTIONARY_RETRY)


def _overlong(request: Request) -> PreparedAnswer | None:
    """The refusal of a request with an overlong list."""
    name = overlong_list(request)
    if name is None:
        return None
    message = f"the field {name} lists more than {ELEMENTS_MAX} elements, or {LIST_MAX} characters"
    return status_reply(431, message, route="other", request=request)

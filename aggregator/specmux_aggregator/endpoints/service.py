"""Requests in, answers out: decisions from ``replies``, bytes from ``documents``, freshness from the
refreshers.

``immediate`` answers what needs no waiting, which is nearly everything; ``respond`` does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.build.jobs import Refused
from specmux_aggregator.discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.repository import Documents
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.discovery import decide as discover
from specmux_aggregator.endpoints.openapi import (
    DOCUMENT_PREFIX,
    ROUTE_DOCUMENT,
    Decision,
    Deliver,
    Revalidate,
    decide,
    deliver,
    unavailable,
)
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.negotiation import MEDIA_TYPES
from specmux_aggregator.http.prepared import Prepared
from specmux_aggregator.http.representations import status_reply
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.upstream.client import Moved
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import MediaType

ATTEMPTS: Final = 3
"""How often a request starts over because the document changed while it was looked for."""

REVALIDATE_TIMEOUT: Final = 5.0
"""Seconds a client with an unknown hash waits for the owner to be asked; then it gets what is known."""

Page = Callable[[Request], Awaitable[Prepared]]


class Service:
    """Answers requests from the current Snapshot. Implements the server's ``Service`` protocol."""

    def __init__(
        self,
        publisher: Publisher,
        representations: Representations,
        documents: Documents,
        *,
        refresher_of: Callable[[BackendName], Refresher | None],
        pages: Mapping[str, Page],
        discovery: DiscoveryWatch | None = None,
        is_private: bool = False,
    ) -> None:
        """``is_private``: no shared cache may keep an answer."""
        self._publisher = publisher
        self._representations = representations
        self._documents = documents
        self._refresher_of = refresher_of
        self._pages = pages
        self._discovery = discovery
        self._is_private = is_private
        self._evictions = 0
        self.moved = 0
        """Documents that their owner had replaced between its root and the download."""

    @property
    def generation(self) -> int:
        """Rises whenever an answer given before may not be given again."""
        discovery = self._discovery.generation if self._discovery is not None else 0
        return self._publisher.current.generation + discovery + self._evictions

    def forget_answers(self) -> None:
        """Bytes were evicted: whoever remembers answers must let go of them."""
        self._evictions += 1

    def immediate(self, request: Request) -> Prepared | None:
        """The answer, if it takes no waiting."""
        if request.path in self._pages:
            return None
        snapshot = self._publisher.current
        decision = self._decide(snapshot, request)
        match decision:
            case Prepared():
                return _marked(decision, request, snapshot)
            case Deliver():
                body = self._representations.get(decision.key, decision.media_type, decision.coding)
                return None if body is None else _marked(deliver(decision, body), request, snapshot)
            case Revalidate():
                return None

    async def respond(self, request: Request) -> Prepared:
        """The answer, whatever it takes: a check of a backend, a download, an encoding."""
        page = self._pages.get(request.path)
        if page is not None:
            return await page(request)
        failure = Failure(Cause.INTERNAL, "")
        for _ in range(ATTEMPTS):
            snapshot = self._publisher.current
            decision = self._decide(snapshot, request)
            if isinstance(decision, Revalidate):
                await self._revalidate(decision.owner)
                snapshot = self._publisher.current
                decision = self._decide(snapshot, request, is_revalidated=True)
            match decision:
                case Prepared():
                    return _marked(decision, request, snapshot)
                case Revalidate():
                    continue
            started = time.monotonic()
            obtained = await self._documents.obtain(decision.key, decision.media_type, decision.coding)
            match obtained:
                case bytes():
                    return _marked(deliver(decision, obtained), request, snapshot)
                case Refused():
                    continue
                case Moved():
                    self.moved += 1
                    failure = Failure(Cause.REDIRECTED, "its document changes faster than its root")
                case Failure():
                    failure = obtained
            # The document did not fit the owner's root: that is read again before the next try.
            is_contradiction = isinstance(obtained, Moved) or failure.cause is Cause.NOT_FOUND
            await self._revalidate(decision.key.owner, newer_than=started if is_contradiction else None)
            if self._is_current(decision.key):
                break
        return unavailable(failure, request, retry_after=self._retry_after(request, failure))

    def _decide(self, snapshot: Snapshot, request: Request, *, is_revalidated: bool = False) -> Decision:
        entry = None
        if request.path.startswith(DOCUMENT_PREFIX):
            entry = snapshot.entries.get(GroupVersion(request.path[len(DOCUMENT_PREFIX) :]))
        if entry is None:
            decision = decide(snapshot, request, is_private=self._is_private)
        else:
            decision = decide(
                snapshot,
                request,
                offered=self._offered(entry.key),
                is_private=self._is_private,
                vouched_until=self._vouched_until(entry.owner, is_revalidated=is_revalidated),
            )
        if decision is None and self._discovery is not None:
            decision = discover(self._discovery.board, request, is_private=self._is_private)
        if decision is None:
            return status_reply(
                404, "the server could not find the requested resource", route="other", request=request
            )
        return decision

    def _offered(self, key: DocumentKey) -> tuple[MediaType, ...]:
        if not self._representations.has_refusals:
            return MEDIA_TYPES
        return tuple(item for item in MEDIA_TYPES if self._representations.refused(key, item) is None)

    def _vouched_until(self, owner: BackendName, *, is_revalidated: bool) -> float | None:
        refresher = self._refresher_of(owner)
        until = refresher.vouched_until if refresher is not None else None
        # After a check, what is known is the answer, however long the check took or however it ended.
        return time.monotonic() if until is None and is_revalidated else until

    async def _revalidate(self, owner: BackendName, *, newer_than: float | None = None) -> None:
        refresher = self._refresher_of(owner)
        if refresher is not None:
            await refresher.revalidate(timeout=REVALIDATE_TIMEOUT, newer_than=newer_than)

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


def _marked(prepared: Prepared, request: Request, snapshot: Snapshot) -> Prepared:
    """The answer, marked where it speaks for a backend that is failing."""
    if prepared.route != ROUTE_DOCUMENT or prepared.status >= 400:
        return prepared
    entry = snapshot.entries.get(GroupVersion(request.path[len(DOCUMENT_PREFIX) :]))
    if entry is None or snapshot.observations[entry.owner].failure is None:
        return prepared
    return replace(prepared, is_stale=True)

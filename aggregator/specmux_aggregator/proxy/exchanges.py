"""Requests under way to backends: who is asked over which connections, and how that went.

A backend that changes is asked anew by the next request; what streams from the old one goes on to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Final

import aiohttp

from specmux_aggregator.config.settings import Polling
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.proxy.header_fields import Field
from specmux_aggregator.proxy.routes import without_credentials
from specmux_aggregator.proxy.upstream import Upstream
from specmux_aggregator.upstream.credentials import Unusable
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS, failure_of
from specmux_aggregator.upstream.identities import Identities

logger: Final = logging.getLogger(__name__)


class Exchange:
    """One request that a backend has begun to answer. Closed by whoever holds it."""

    def __init__(
        self, answer: aiohttp.ClientResponse, backend: Backend, held: contextlib.AsyncExitStack
    ) -> None:
        self.answer = answer
        self.backend = backend
        self._held = held

    async def close(self) -> None:
        """Let go of the connection: kept if the answer is whole, else cut."""
        self.answer.close()
        await self._held.aclose()


class Exchanges:
    """All of one service. Lives on one event loop until ``close``."""

    def __init__(
        self, snapshot: Callable[[], Snapshot], metrics: Metrics, *, polling: Polling, identities: Identities
    ) -> None:
        self._snapshot = snapshot
        self._metrics = metrics
        self._polling = polling
        self._identities = identities
        self._upstreams: dict[tuple[BackendName, bool], Upstream] = {}
        """By backend, and whether it is asked with our credentials."""
        self._retiring: dict[asyncio.Task[None], Upstream] = {}
        self._failing: dict[BackendName, Cause] = {}

    async def begin(
        self,
        backend: Backend,
        method: str,
        target: str,
        fields: Sequence[Field],
        *,
        is_ours: bool,
        body: AsyncIterable[bytes] | None = None,
        idle_timeout: float | None = None,
    ) -> Exchange | Failure:
        """The answer from its head on. ``is_ours``: with our credentials, else with ``fields`` alone."""
        upstream = self._upstream(backend, is_ours=is_ours)
        try:
            async with contextlib.AsyncExitStack() as stack:
                upstream.hold()
                stack.callback(upstream.release)
                self._metrics.relay.in_flight.inc()
                stack.callback(self._metrics.relay.in_flight.dec)
                answer = await stack.enter_async_context(
                    upstream.transport.request(
                        method, target, fields=fields, body=body, idle_timeout=idle_timeout
                    )
                )
                return Exchange(answer, backend, stack.pop_all())
        except Unusable as unusable:
            return unusable.failure
        except TRANSPORT_ERRORS as error:
            return failure_of(error, self._polling)

    def answered(self, backend: Backend, status: int) -> None:
        """A backend's answer goes to its client."""
        self._metrics.relay.requests.labels(backend.name, f"{status // 100}xx").inc()

    def ended(self, backend: Backend) -> None:
        """It went whole."""
        if self._failing.pop(backend.name, None) is not None:
            logger.info("backend %s: requests are passed on again", backend.name)

    def broke(self, backend: Backend, reason: Exception | Failure) -> None:
        """It stopped before its end, or must go no further."""
        self._note(backend, reason if isinstance(reason, Failure) else failure_of(reason, self._polling))

    def failed(self, backend: Backend, failure: Failure, status: int) -> None:
        """A client got an answer of ours with ``status``, since its backend gave none."""
        self.answered(backend, status)
        self._note(backend, failure)

    async def close(self) -> None:
        """Close every connection; what streams is cut."""
        upstreams = [*self._retiring.values(), *self._upstreams.values()]
        self._upstreams.clear()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for upstream in upstreams:
            await upstream.close()

    def _note(self, backend: Backend, failure: Failure) -> None:
        """Count a failure; log it unless it is what failed before."""
        self._metrics.backend_failures.labels(backend.name, failure.cause.value).inc()
        if self._failing.get(backend.name) != failure.cause:
            self._failing[backend.name] = failure.cause
            logger.warning("backend %s: a request was not passed on: %s", backend.name, failure.detail)

    def _upstream(self, backend: Backend, *, is_ours: bool) -> Upstream:
        key = (backend.name, is_ours)
        wanted = backend if is_ours else without_credentials(backend)
        upstream = self._upstreams.get(key)
        if upstream is not None and upstream.backend == wanted:
            return upstream
        if not is_ours and backend.url.startswith("http:"):
            logger.warning("backend %s: credentials of clients are passed on without TLS", backend.name)
        names = self._snapshot().observations.keys()
        for other in [other for other in self._upstreams if other == key or other[0] not in names]:
            self._retire(self._upstreams.pop(other))
        self._upstreams[key] = upstream = Upstream(wanted, polling=self._polling, identities=self._identities)
        return upstream

    def _retire(self, upstream: Upstream) -> None:
        self._failing.pop(upstream.backend.name, None)
        task = asyncio.create_task(upstream.retire())
        self._retiring[task] = upstream
        task.add_done_callback(self._retiring.pop)

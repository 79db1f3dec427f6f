"""Requests under way to backends: who is asked over which connections, and how that went.

A backend that changes is asked anew by the next request; what streams from the old one goes on to its end.
Users never share connections: an answer that a backend sends out of turn can reach nobody but whose it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import replace
from typing import Final

import aiohttp

from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.proxy.header_fields import Field, asker_of
from specmux_aggregator.proxy.routes import without_credentials
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS, failure_of
from specmux_aggregator.upstream.identities import Identities, Unusable
from specmux_aggregator.upstream.transport import BackendTransport

logger: Final = logging.getLogger(__name__)

ASKERS: Final = 256
"""Users whose connections are kept, over all backends; then those go that have not asked for longest."""

CONNECT_TIMEOUT: Final = 30.0
"""Seconds that a client's connection may take to be opened, as client-go waits. Informers open a hundred at
once, each with a TLS handshake: to wait beats an error. Polls have polling.connect_timeout."""

OPENINGS: Final = 8
"""Connections that are opened to one backend at a time for clients: of a hundred TLS handshakes at once each
takes longer than all of them one after the other."""

AHEAD: Final = 32 * 1024
"""As in upstream/transport.py; this much is held for every client that reads slowly."""

_Key = tuple[BackendName, bytes | None]
"""A backend, and who asks it (asker_of); None: we do, with our credentials."""


class ProxyExchange:
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
        self,
        snapshot: Callable[[], Snapshot],
        metrics: Metrics,
        *,
        polling: PollingSettings,
        identities: Identities,
    ) -> None:
        self._snapshot = snapshot
        self._metrics = metrics
        self._polling = polling
        self._relaying = replace(polling, connect_timeout=max(polling.connect_timeout, CONNECT_TIMEOUT))
        self._identities = identities
        self._upstreams: OrderedDict[_Key, StreamedBackend] = OrderedDict()
        """The last that asked at the end."""
        self._retiring: dict[asyncio.Task[None], StreamedBackend] = {}
        self._failing: dict[BackendName, Cause] = {}
        self._openings: dict[BackendName, asyncio.Semaphore] = {}

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
    ) -> ProxyExchange | Failure:
        """The answer from its head on. ``is_ours``: with our credentials, else with ``fields`` alone."""
        upstream = self._upstream(backend, None if is_ours else asker_of(fields))
        try:
            async with contextlib.AsyncExitStack() as stack:
                upstream.hold()
                stack.callback(upstream.release)
                self._metrics.proxy.in_flight.inc()
                stack.callback(self._metrics.proxy.in_flight.dec)
                answer = await stack.enter_async_context(
                    upstream.transport.request(
                        method, target, fields=fields, body=body, idle_timeout=idle_timeout
                    )
                )
                return ProxyExchange(answer, backend, stack.pop_all())
        except Unusable as unusable:
            return unusable.failure
        except TRANSPORT_ERRORS as error:
            return failure_of(error, self._polling if is_ours else self._relaying)

    def answered(self, backend: Backend, status: int) -> None:
        """A backend's answer goes to its client."""
        self._metrics.proxy.requests.labels(backend.name, f"{status // 100}xx").inc()

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

    def _upstream(self, backend: Backend, asker: bytes | None) -> StreamedBackend:
        key = (backend.name, asker)
        wanted = backend if asker is None else without_credentials(backend)
        upstream = self._upstreams.get(key)
        if upstream is not None and upstream.backend == wanted:
            self._upstreams.move_to_end(key)
            return upstream
        self._make_room(key)
        if asker is not None and backend.url.startswith("http:") and not self._is_asked_by_clients(backend):
            logger.warning("backend %s: credentials of clients are passed on without TLS", backend.name)
        polling = self._polling if asker is None else self._relaying
        openings = None
        if asker is not None:
            openings = self._openings.setdefault(backend.name, asyncio.Semaphore(OPENINGS))
        upstream = StreamedBackend(wanted, polling=polling, identities=self._identities, openings=openings)
        self._upstreams[key] = upstream
        return upstream

    def _make_room(self, key: _Key) -> None:
        """Let go of what ``key`` replaces, of backends that are gone, and of the oldest of too many."""
        names = self._snapshot().observations.keys()
        gone = [other for other in self._upstreams if other == key or other[0] not in names]
        for other in gone:
            self._failing.pop(other[0], None)
            if other[0] not in names:
                self._openings.pop(other[0], None)
            self._retire(self._upstreams.pop(other))
        while len(self._upstreams) >= ASKERS:
            self._retire(self._upstreams.popitem(last=False)[1])

    def _is_asked_by_clients(self, backend: Backend) -> bool:
        return any(name == backend.name and asker is not None for name, asker in self._upstreams)

    def _retire(self, upstream: StreamedBackend) -> None:
        task = asyncio.create_task(upstream.retire())
        self._retiring[task] = upstream
        task.add_done_callback(self._retiring.pop)


class StreamedBackend:
    """The way to one backend for requests whose answers stream: it ends when the last of them has.

    It is asked with the credentials that ``backend`` has. Lives on one event loop."""

    def __init__(
        self,
        backend: Backend,
        *,
        polling: PollingSettings,
        identities: Identities,
        openings: asyncio.Semaphore | None,
    ) -> None:
        self.backend = backend
        # No limit of its own: each connection stands for one of a client, and those are counted
        # (listen.max_connections). A watch must not keep other requests waiting.
        self.transport = BackendTransport(
            backend,
            polling=polling,
            identities=identities,
            connections=0,
            openings=openings,
            ahead=AHEAD,
            keeps_after_no_body=False,
        )
        self._held = 0
        self._is_free = asyncio.Event()
        self._is_free.set()

    def hold(self) -> None:
        """A request is under way: ``retire`` waits for its ``release``."""
        self._held += 1
        self._is_free.clear()

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            self._is_free.set()

    async def retire(self) -> None:
        """Close once nothing is under way any more."""
        await self._is_free.wait()
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

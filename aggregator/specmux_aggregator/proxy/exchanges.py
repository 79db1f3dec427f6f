"""Requests under way to backends: which connections they use, and how they end.

A changed backend is contacted anew by the next request; streams from the old one continue to their end. Users
never share connections, so an answer that a backend sends out of turn reaches only the user it belongs to.
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
from specmux_aggregator.upstream.connections.connector import ServerRecord
from specmux_aggregator.upstream.credentials import Identities, Unusable
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS, failure_of
from specmux_aggregator.upstream.transport import BackendTransport

logger: Final = logging.getLogger(__name__)

ASKERS: Final = 256
"""Users whose connections are kept, over all backends; the least recently active are dropped."""

CONNECT_TIMEOUT: Final = 30.0
"""Seconds for opening a client's connection, as in client-go. Informers open a hundred at once, each with a
TLS handshake: waiting is better than an error. Polls use polling.connect_timeout."""

OPENINGS: Final = 8
"""Connections to one backend opened at a time for clients: a hundred concurrent TLS handshakes each take
longer than all of them in sequence."""

AHEAD: Final = 32 * 1024
"""Bytes as in upstream/transport.py, held for every client that reads slowly."""

_Key = tuple[BackendName, bytes | None]
"""A backend, and the caller (asker_of); None: this service, with its own credentials."""


class ProxyExchange:
    """A request that a backend has begun to answer. Its holder closes it."""

    def __init__(
        self, answer: aiohttp.ClientResponse, backend: Backend, held: contextlib.AsyncExitStack
    ) -> None:
        self.answer = answer
        self.backend = backend
        self._held = held

    async def close(self) -> None:
        """Release the connection: it is kept if the answer is complete, else cut."""
        self.answer.close()
        await self._held.aclose()


class Exchanges:
    """The exchanges of one service. Lives on one event loop until ``close``."""

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
        """The most recent caller is last."""
        self._retiring: dict[asyncio.Task[None], StreamedBackend] = {}
        self._failing: dict[BackendName, Cause] = {}
        self._records: dict[BackendName, ServerRecord] = {}

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
        """The answer, from its head on. ``is_ours``: send this service's credentials, else only
        ``fields``."""
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

    def count_answer(self, backend: Backend, status: int) -> None:
        """Count a backend's answer that is passed to its client."""
        self._metrics.proxy.requests.labels(backend.name, f"{status // 100}xx").inc()

    def note_end(self, backend: Backend) -> None:
        """Note that the answer is complete."""
        if self._failing.pop(backend.name, None) is not None:
            logger.info("backend %s: requests are passed on again", backend.name)

    def note_break(self, backend: Backend, reason: Exception | Failure) -> None:
        """Note that the answer broke off, or must not continue."""
        self._note(backend, reason if isinstance(reason, Failure) else failure_of(reason, self._polling))

    def count_failure(self, backend: Backend, failure: Failure, status: int) -> None:
        """Count an answer with ``status`` that this service gave because the backend gave none."""
        self.count_answer(backend, status)
        self._note(backend, failure)

    async def close(self) -> None:
        """Close every connection and cut all streams."""
        upstreams = [*self._retiring.values(), *self._upstreams.values()]
        self._upstreams.clear()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for upstream in upstreams:
            await upstream.close()

    def _note(self, backend: Backend, failure: Failure) -> None:
        """Count a failure; log it unless it repeats the previous one."""
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
        record = None
        if asker is not None:
            record = self._records.setdefault(backend.name, ServerRecord(asyncio.Semaphore(OPENINGS)))
        upstream = StreamedBackend(wanted, polling=polling, identities=self._identities, record=record)
        self._upstreams[key] = upstream
        return upstream

    def _make_room(self, key: _Key) -> None:
        """Drop what ``key`` replaces, connections to backends that are gone, and the oldest beyond the
        limit."""
        names = self._snapshot().observations.keys()
        gone = [other for other in self._upstreams if other == key or other[0] not in names]
        for other in gone:
            self._failing.pop(other[0], None)
            if other[0] not in names:
                self._records.pop(other[0], None)
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
    """Connections to one backend for streamed answers; closes when the last of them has ended.

    Uses the credentials of ``backend``. Lives on one event loop.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        polling: PollingSettings,
        identities: Identities,
        record: ServerRecord | None,
    ) -> None:
        self.backend = backend
        # No limit of its own: each connection serves one of a client, and those are limited by
        # listen.max_connections. A watch must not block other requests.
        self.transport = BackendTransport(
            backend,
            polling=polling,
            identities=identities,
            connections=0,
            record=record,
            ahead=AHEAD,
            keeps_after_no_body=False,
        )
        self._held = 0
        self._is_free = asyncio.Event()
        self._is_free.set()

    def hold(self) -> None:
        """Note a request under way: ``retire`` waits for its ``release``."""
        self._held += 1
        self._is_free.clear()

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            self._is_free.set()

    async def retire(self) -> None:
        """Close once nothing is under way."""
        await self._is_free.wait()
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

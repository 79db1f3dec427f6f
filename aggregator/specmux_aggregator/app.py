"""The composition root: the only place where the parts of the service are put together."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.document_checks import document_checks_of
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.auth.guard import LoopbackHosts, RequestGuard, gate_of, warn_of_exposure
from specmux_aggregator.changes.endpoint import PATH as CHANGES_PATH
from specmux_aggregator.changes.endpoint import ROUTE as CHANGES_ROUTE
from specmux_aggregator.changes.endpoint import ChangesEndpoint
from specmux_aggregator.changes.stream import ChangeStreams
from specmux_aggregator.collectors import register_collectors
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.memory_pressure import MemoryWatch
from specmux_aggregator.endpoints.health import ConfigState, Pages, ServiceState
from specmux_aggregator.endpoints.openapi_v2 import SwaggerReads
from specmux_aggregator.endpoints.routes import Route
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.mounts import READER, NamedFunction
from specmux_aggregator.parts import (
    Sources,
    cluster_version_of,
    deltas_of,
    history_of,
    merged_swagger_of,
    prefetch_of,
    published_parts_of,
    schema_files_of,
    schema_routes,
    service_of,
    swagger_routes,
)
from specmux_aggregator.proxy.handler import ProxyHandler
from specmux_aggregator.reader.explain_endpoint import EXPLAIN, SEARCH, Explain, Search
from specmux_aggregator.reader.page_answers import PREFIX as UI_PREFIX
from specmux_aggregator.reader.page_endpoint import Ui
from specmux_aggregator.reader.process import Reader
from specmux_aggregator.reader.reader_client import Reading
from specmux_aggregator.reader.requests import SiteParts, State
from specmux_aggregator.reader.validation_endpoint import validation_of
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.tasks import finish, log_failure
from specmux_aggregator.upstream.body_budget import BODIES
from specmux_converters.counted_nouns import counted

if TYPE_CHECKING:  # imported where there is a cluster
    from specmux_aggregator.kubernetes.source import ClusterSource
    from specmux_aggregator.kubernetes.watch import Timing
    from specmux_aggregator.server.acceptors.keeper import Keeper

logger = logging.getLogger(__name__)

_LOAD_PAGES: Final[NamedFunction[[State], None]] = NamedFunction(READER["load pages"])
_HOME_PAGE: Final[NamedFunction[..., Any]] = NamedFunction(READER["home page"])


class App:
    """A running service. Start once and stop once, on one event loop."""

    def __init__(
        self,
        settings: Settings,
        state: StateDirectory | None,
        *,
        cluster: Backend | None = None,
        is_for_one_user: bool = False,
        watch_timing: Timing | None = None,
        sockets: Sequence[socket.socket] = (),
        keeper: Keeper | None = None,
    ) -> None:
        """Takes ownership of ``state`` and ``sockets``. Nothing runs before ``start``.

        ``sockets``: already listen; then ``listen.address`` and ``listen.port`` are not bound.
        ``cluster``: the apiserver that supplies backends or authorizes callers, if configured. Raises
        InvalidConfig if the authentication settings cannot be used.
        """
        self.settings = settings
        self.config = ConfigState()
        self.metrics = Metrics(CollectorRegistry())
        self._tasks: list[asyncio.Task[None]] = []
        self.published = published = published_parts_of(settings, self.metrics, state, lambda: self._sources)
        self._sources = sources = Sources(
            settings, self.metrics, published, cluster=cluster, timing=watch_timing
        )
        self.history = history_of(
            settings, published, self.metrics.registry, is_looking=self._sources.first_look.is_pending
        )
        checker = published.workers.checker
        self.document_checks = document_checks_of(settings, self.publisher, published.documents, checker)
        self._prefetch = prefetch_of(settings, published)
        self.schemas = schema_files_of(settings, published, sources)
        self.swagger = merged_swagger_of(settings, published, sources)
        self._reading = Reading(Reader(counted=self.metrics.reader_job), published.documents, self._snapshot)
        self._validation = validation_of(
            settings, published.documents, self._snapshot, self.metrics, version=cluster_version_of(sources)
        )
        self._proxy_handler = ProxyHandler(self._snapshot, self.metrics, settings, sources.identities)
        self._gate = self._proxy_handler.guard = self._gate_towards(cluster)
        seen = ServiceState(
            publisher=published.publisher,
            representations=published.representations,
            backends=sources.backends,
            backend_sets=sources.backend_sets,
            cluster=sources.cluster,
            discovery=sources.discovery,
            document_checks=self.document_checks,
            config=self.config,
            first_look=sources.first_look,
            unread=lambda: self._reading.refused,
        )
        self._deltas = deltas_of(settings, published, self.history)
        self.service = service_of(
            settings, published, sources, routes=self._routes(seen), deltas=self._deltas
        )
        self.server = self._server(is_for_one_user=is_for_one_user, sockets=sockets)
        if keeper is not None:
            self._share_with(keeper)
        self._memory = MemoryWatch(percent=settings.memory.shed_percent, shed=self._shed)
        self._register(seen)

    @property
    def publisher(self) -> Publisher:
        return self.published.publisher

    @property
    def backends(self) -> Backends:
        return self._sources.backends

    @property
    def _site(self) -> SiteParts:
        return SiteParts(
            is_logged=self.history is not None,
            can_validate=self._validation is not None,
            has_schemas=self.schemas is not None,
        )

    @property
    def cluster(self) -> ClusterSource | None:
        return self._sources.cluster

    @property
    def discovery(self) -> DiscoveryWatch | None:
        return self._sources.discovery

    async def start(self) -> tuple[str, int]:
        """Listen, then watch the backends; returns the address and port that were bound. Waits for no
        backend."""
        self._sources.first_look.start()
        bound = await self.server.start()
        for host, port in self.server.bound:
            warn_of_exposure(self.settings, host, port)
        if self._gate is not None:
            self._gate.start()
        if self.history is not None:
            await self.history.start()
        self._memory.start()
        if self.cluster is not None:
            self._run(self.cluster.run(), "the cluster is no longer followed")
        await self._sources.backend_sets.configure(self.settings.backends)
        if self.document_checks is not None:
            self._run(self.document_checks.run(), "documents are no longer checked")
        if self._prefetch is not None:
            self._run(self._prefetch.run(), "documents are no longer fetched ahead")
        if self.schemas is not None and self.schemas.tokens is not None:
            self._run(self.schemas.tokens.run(), "schemas.token_file is no longer read")
        self._run(self.published.workers.warm_up(), "the workers could not be started ahead")
        known = self._sources.first_look
        warm = self._reading.warm_up(
            partial(_HOME_PAGE, self._site, Coding.IDENTITY),
            first=_LOAD_PAGES,
            is_known=lambda: not known.runs(),
        )
        self._run(warm, "the reader could not be started ahead")
        return bound

    async def reconfigure(self, settings: Settings) -> None:
        """Apply a new set of configured backends. All other settings stay as they were at the start."""
        await self._sources.backend_sets.configure(settings.backends)
        self.note_config(error=None)
        logger.info("configuration reloaded: %s", counted(len(settings.backends), "backend"))
        waiting = [
            each.name
            for each in fields(settings)
            if each.name != "backends" and getattr(settings, each.name) != getattr(self.settings, each.name)
        ]
        if waiting:
            logger.warning("changed settings wait for a restart: %s", ", ".join(waiting))

    def note_config(self, *, error: str | None) -> None:
        """Record the last reading of the configuration; after an error the previous one stays in force."""
        self.config.error = error
        self.metrics.config_read(is_current=error is None)

    async def stop(self) -> None:
        """Stop accepting, finish running requests, then release everything, even if some step fails."""
        published = self.published
        front = (self._proxy_handler, self._gate, self._memory)
        origins = (self._sources.backend_sets, self.backends, self.discovery, self.schemas, self.history)
        documents = (
            self._deltas,
            self.swagger,
            self._reading,
            self._validation,
            published.documents,
            published.workers,
            published.state,
        )
        await finish(
            logger,
            None if self.history is None else self.history.followers.close,
            self.server.stop,
            *_ends(front),
            self._end_tasks,
            *_ends(origins),
            *_ends(documents),
        )

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, None], failure: str) -> None:
        """Run in the background until ``stop``; log ``failure`` if it raises."""
        task = asyncio.create_task(work)
        log_failure(task, logger, failure)
        self._tasks.append(task)

    def _snapshot(self) -> Snapshot:
        return self.publisher.current

    def _shed(self) -> int:
        """Drop encoded forms because memory is short, and release their bytes elsewhere; returns how many
        were dropped."""
        shed = self.published.representations.shed()
        if self.swagger is not None:
            self.swagger.forget()
        if self._deltas is not None:
            self._deltas.kept.clear()
        if shed:
            self.server.forget_bodies()
        return shed

    def _gate_towards(self, cluster: Backend | None) -> RequestGuard | None:
        return gate_of(
            self.settings,
            self.metrics,
            cluster=cluster,
            identities=self._sources.identities,
            is_authorised_elsewhere=self._proxy_handler.asks_as_the_client,
        )

    def _register(self, state: ServiceState) -> None:
        register_collectors(
            self.metrics,
            self.settings,
            state,
            server=self.server,
            service=self.service,
            memory=self._memory,
            schemas=self.schemas,
            deltas=self._deltas,
        )

    def _share_with(self, keeper: Keeper) -> None:
        from specmux_aggregator.server.acceptors.passing import Acceptors

        self.server.acceptors = acceptors = Acceptors(keeper, lambda: self.service.generation)
        self.metrics.registry.register(acceptors)
        self.publisher.subscribe(acceptors.renew)
        if self.discovery is not None:
            self.discovery.renewed = acceptors.renew

    def _routes(self, state: ServiceState) -> list[Route]:
        """Every route except documents, their root and discovery."""
        pages = Pages(state, self.metrics, auth_complaint=self._auth_complaint)
        is_private = self.settings.auth.is_private
        routes = [*pages.routes(), *schema_routes(self.schemas), *swagger_routes(self.swagger)]
        log = None
        if self.history is not None:
            log = self.history.log
            changes = ChangesEndpoint(self.history, self.published.workers.catalogue, is_private=is_private)
            routes.append(Route(f"{CHANGES_PATH}/", changes, CHANGES_ROUTE))
        ui = Ui(self._reading, status=pages.status, log=log, is_private=is_private, site=self._site)
        return [
            *routes,
            Route(EXPLAIN, Explain(self._reading, is_private=is_private), "explain"),
            Route(SEARCH, Search(self._reading, is_private=is_private), "search"),
            Route(UI_PREFIX, ui, "ui"),
        ]

    def _server(self, *, is_for_one_user: bool, sockets: Sequence[socket.socket]) -> HTTPServer:
        """The server, with the handlers that claim requests: validation, /openapi/v2, the stream,
        backends."""
        validation = [] if self._validation is None else [self._validation]
        reads = [] if self.swagger is None else [SwaggerReads(self.service, self.metrics.swagger_readers)]
        is_private = self.settings.auth.is_private
        streams = []
        if self.history is not None:
            streams.append(ChangeStreams(self.history.followers, is_private=is_private, guard=self._gate))
        return HTTPServer(
            self.service,
            self.settings.listen,
            sockets=sockets,
            slow_request=self.settings.log.slow_request,
            guard=LoopbackHosts(self._gate) if is_for_one_user else self._gate,
            streaming=(*validation, *reads, *streams, self._proxy_handler),
            client_ca_file=self.settings.auth.ca_file,
            unread_max=BODIES * self.settings.limits.max_document_bytes,
        )

    def _auth_complaint(self) -> str | None:
        return None if self._gate is None else self._gate.complaint()


class _Closable(Protocol):
    async def close(self) -> None: ...


def _ends(parts: Iterable[_Closable | None]) -> Iterator[Callable[[], Awaitable[None]]]:
    return (part.close for part in parts if part is not None)

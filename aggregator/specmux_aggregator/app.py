"""The composition root: the only place where the parts of the service are put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.choice import refresher_of
from specmux_aggregator.aggregation.document_checks import document_checks_of
from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.auth.hosts import LoopbackHosts
from specmux_aggregator.auth.modes import gate_of, warn_of_exposure
from specmux_aggregator.changes.opening import change_endpoints, change_history, with_change_streams
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.state import ConfigState
from specmux_aggregator.discovery.synthesis import Synthesis
from specmux_aggregator.discovery.watch import discovery_of
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.memory import MemoryWatch
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.jobs.workers import Workers
from specmux_aggregator.kubernetes.opening import cluster_of
from specmux_aggregator.kubernetes.watch import Timing
from specmux_aggregator.metrics.checks import count_check
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.metrics.registration import register_collectors
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.parts import schema_files_of, service_of
from specmux_aggregator.proxy.handler import proxy_of
from specmux_aggregator.questions.process import Reader
from specmux_aggregator.questions.reading import Reading
from specmux_aggregator.questions.validation_endpoint import ValidationStreams, validation_of
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.protocols import StreamingHandler
from specmux_aggregator.tasks import finish, log_failure
from specmux_aggregator.upstream.body_budget import BODIES, BodyBudget
from specmux_aggregator.upstream.identities import Identities

logger = logging.getLogger(__name__)


class App:
    """One running service. Started once and stopped once, on one event loop."""

    def __init__(
        self,
        settings: Settings,
        state: StateDirectory | None,
        *,
        cluster: Backend | None = None,
        is_for_one_user: bool = False,
        watch_timing: Timing | None = None,
    ) -> None:
        """Takes ownership of ``state``. Nothing runs before ``start``.

        ``cluster``: the apiserver that is a source of backends, or decides who may ask, where the settings
        want one to. Raises InvalidConfig when what callers are known by cannot be used.
        """
        self.settings = settings
        self.config = ConfigState()
        self.metrics = Metrics(CollectorRegistry())
        self._state = state
        self._workers = Workers(settings)
        self._builder, self._encoder = self._workers.builder, self._workers.encoder
        self._identities = Identities()
        self._bodies = BodyBudget(BODIES * settings.limits.max_document_bytes)
        self._pace = Pace()
        self._representations = Representations(max_bytes=settings.memory.documents_bytes)
        self.publisher = Publisher(self._representations, timed=self.metrics.timed, archive=state)
        self.backends = Backends(
            self.publisher,
            make=self._refresher,
            restore=None if state is None else state.restore,
            forget=self.metrics.forget_backend,
        )
        self.backend_sets = BackendSets(self.backends.apply)
        self._documents = DocumentRepository(
            self._representations,
            self._encoder,
            state,
            origin_of=self.backends.origin,
            limits=settings.limits.of_documents,
            timed=self.metrics.timed,
        )
        self.cluster = cluster_of(
            cluster,
            settings,
            backends=self.backends,
            find=self.backend_sets.find,
            publisher=self.publisher,
            documents=self._documents,
            builder=self._builder,
            identities=self._identities,
            notes=state,
            timing=watch_timing,
        )
        self._first_look = FirstLook(
            lambda: self.publisher.current.observations.values(), is_settled=self._is_settled
        )
        self.history = change_history(
            settings,
            self._builder,
            state,
            documents=self._documents,
            publisher=self.publisher,
            registry=self.metrics.registry,
        )
        self.discovery = discovery_of(
            settings,
            self.publisher,
            Synthesis(self._documents, self._builder, limits=settings.limits.of_documents),
            pace=self._pace,
            is_settled=self._is_settled,
        )
        self.document_checks = document_checks_of(
            settings, self.publisher, self._documents, self._workers.checker
        )
        self.schemas = schema_files_of(
            settings, self.publisher, self._documents, self._workers.catalogue, self.discovery
        )
        reader = Reader(counted=self.metrics.reader_job)
        self._reading = Reading(reader, self._documents, lambda: self.publisher.current)
        self._validation = validation_of(
            settings.validation, self._documents, lambda: self.publisher.current, self.metrics
        )
        self._proxy_handler = proxy_of(settings, self.publisher, self.metrics, self._identities)
        self._gate = gate_of(
            settings,
            self.metrics,
            cluster=cluster,
            identities=self._identities,
            is_authorised_elsewhere=self._proxy_handler.asks_as_the_client,
        )
        self.service = self._service()
        self.server = HTTPServer(
            self.service,
            settings.listen,
            slow_request=settings.log.slow_request,
            guard=LoopbackHosts(self._gate) if is_for_one_user else self._gate,
            streaming=self._streams(),
            client_ca_file=settings.auth.ca_file,
            unread_max=BODIES * settings.limits.max_document_bytes,
        )
        self._memory = MemoryWatch(percent=settings.memory.shed_percent, shed=self._shed)
        self._tasks: list[asyncio.Task[None]] = []
        register_collectors(
            self.metrics,
            settings,
            publisher=self.publisher,
            backends=self.backends,
            representations=self._representations,
            cluster=self.cluster,
            server=self.server,
            moved=lambda: self.service.moved,
            memory=self._memory,
            schemas=self.schemas,
            document_checks=self.document_checks,
            discovery=self.discovery,
        )

    async def start(self) -> tuple[str, int]:
        """Listen, then watch the backends; returns the address and port bound. Waits for no backend."""
        warn_of_exposure(self.settings)
        self._first_look.start()
        bound = await self.server.start()
        if self._gate is not None:
            self._gate.start()
        if self.history is not None:
            await self.history.start()
        self._memory.start()
        if self.cluster is not None:
            self._run(self.cluster.run(), "the cluster is no longer followed")
        await self.backend_sets.configure(self.settings.backends)
        if self.document_checks is not None:
            self._run(self.document_checks.run(), "documents are no longer checked")
        self._run(self._workers.warm_up(), "the workers could not be started ahead")
        return bound

    async def reconfigure(self, settings: Settings) -> None:
        """Put other configured backends in force. All other settings stay as they were at the start."""
        await self.backend_sets.configure(settings.backends)
        self.note_config(error=None)
        logger.info("configuration reloaded: %d backends", len(settings.backends))

    def note_config(self, *, error: str | None) -> None:
        """How the configuration was last read; with an error the one before stays in force."""
        self.config.error = error
        self.metrics.config_read(is_current=error is None)

    async def stop(self) -> None:
        """Stop accepting, finish what runs, then let go of everything, whatever fails in it."""
        front = (self._proxy_handler, self._gate, self._memory)
        origins = (self.backend_sets, self.backends, self.discovery, self.schemas, self.history)
        documents = (self._reading, self._validation, self._documents, self._workers, self._state)
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
        """In the background until ``stop``; ``failure`` is logged when it ends with a bug."""
        task = asyncio.create_task(work)
        log_failure(task, logger, failure)
        self._tasks.append(task)

    def _refresher(self, observation: Observation) -> Refresher:
        return refresher_of(
            observation,
            self._builder,
            manifests=None if self.cluster is None else self.cluster.manifests,
            identities=self._identities,
            bodies=self._bodies,
            settings=self.settings,
            publish=self.publisher.publish,
            observed=partial(count_check, self.metrics),
            follow=None if self.discovery is None else self.discovery.follower,
            pace=self._pace,
        )

    def _is_settled(self) -> bool:
        """Whether it is known which backends there are."""
        return self.backend_sets.is_settled and (self.cluster is None or not self.cluster.pending)

    def _shed(self) -> int:
        """Drop forms because memory is short, with what else keeps their bytes; how many they were."""
        shed = self._representations.shed()
        if shed:
            self.server.forget_bodies()
        return shed

    def _service(self) -> Service:
        return service_of(
            self.settings,
            self.metrics,
            config=self.config,
            auth_complaint=lambda: None if self._gate is None else self._gate.complaint(),
            publisher=self.publisher,
            representations=self._representations,
            documents=self._documents,
            backends=self.backends,
            backend_sets=self.backend_sets,
            cluster=self.cluster,
            document_checks=self.document_checks,
            reading=self._reading,
            log=None if self.history is None else self.history.log,
            schemas=self.schemas,
            others=change_endpoints(self.history, is_private=self.settings.auth.is_private),
            discovery=self.discovery,
            is_looking=self._first_look.runs,
        )

    def _streams(self) -> StreamingHandler:
        """What answers beside the service: backends, the stream of changes, the check of objects."""
        is_private = self.settings.auth.is_private
        streams = with_change_streams(
            self.history, self._proxy_handler, is_private=is_private, guard=self._gate
        )
        return streams if self._validation is None else ValidationStreams(self._validation, streams)


class _Closable(Protocol):
    async def close(self) -> None: ...


def _ends(parts: Iterable[_Closable | None]) -> Iterator[Callable[[], Awaitable[None]]]:
    return (part.close for part in parts if part is not None)

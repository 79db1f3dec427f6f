"""The composition root: the only place where the parts of the service are put together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.choice import refresher_of
from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.auth.hosts import LoopbackHosts
from specmux_aggregator.auth.modes import gate_of, warn_of_exposure
from specmux_aggregator.build.worker import Worker
from specmux_aggregator.changes.endpoint import PATH as CHANGES_PATH
from specmux_aggregator.changes.endpoint import ChangesEndpoint
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.opening import change_history
from specmux_aggregator.changes.stream import ChangeStreams
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.state import ConfigState
from specmux_aggregator.discovery.synthesis import Synthesis
from specmux_aggregator.discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.repository import Documents
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.health import Pages
from specmux_aggregator.endpoints.pages_of_documents import reading_endpoints
from specmux_aggregator.endpoints.reading import Reading
from specmux_aggregator.endpoints.schema_answers import PREFIX, Access, release_in
from specmux_aggregator.endpoints.schema_tokens import PathTokens
from specmux_aggregator.endpoints.schemas import SchemaFiles
from specmux_aggregator.endpoints.service import Endpoint, Service
from specmux_aggregator.endpoints.validation import ValidationStreams, validation_of
from specmux_aggregator.kubernetes.cluster_backends import CUSTOM_RESOURCES
from specmux_aggregator.kubernetes.source import ClusterSource
from specmux_aggregator.kubernetes.templates import ClusterTemplates
from specmux_aggregator.kubernetes.watch import Timing
from specmux_aggregator.memory import MemoryWatch
from specmux_aggregator.metrics.checks import count_check
from specmux_aggregator.metrics.discovery import DiscoveryCollector
from specmux_aggregator.metrics.document_checks import DocumentCheckCollector
from specmux_aggregator.metrics.instruments import Metrics, StateCollector
from specmux_aggregator.metrics.kubernetes import SourceCollector
from specmux_aggregator.metrics.limits import LimitCollector
from specmux_aggregator.metrics.requests import RequestCollector
from specmux_aggregator.metrics.schemas import SchemaCollector
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.proxy.handler import ProxyHandler
from specmux_aggregator.reader.process import Reader
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.protocols import StreamingHandler
from specmux_aggregator.tasks import log_failure
from specmux_aggregator.upstream.body_budget import BODIES, BodyBudget
from specmux_aggregator.upstream.identities import Identities
from specmux_aggregator.version import VERSION

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
        self._is_for_one_user = is_for_one_user
        self.config = ConfigState()
        self.metrics = Metrics(CollectorRegistry())
        self._limits = settings.limits.of_documents
        self._identities = Identities()
        self._bodies = BodyBudget(BODIES * settings.limits.max_document_bytes)
        self._pace = Pace()
        self._state = state
        # Two processes, so that the conversion of one backend's document never delays a client's encoding.
        self._builder = Worker(timeout=settings.limits.build_timeout)
        self._encoder = Worker(timeout=settings.limits.build_timeout)
        self._representations = Representations(max_bytes=settings.memory.documents_bytes)
        self.publisher = Publisher(self._representations, timed=self.metrics.timed, archive=state)
        self.backends = Backends(
            self.publisher,
            make=self._refresher,
            restore=None if state is None else state.restore,
            forget=self.metrics.forget_backend,
        )
        self.backend_sets = BackendSets(self.backends.apply)
        self._documents = self._repository()
        self._templates = self._cluster_templates()
        self.cluster = None if cluster is None else self._cluster_source(cluster, watch_timing or Timing())
        self._first_look = FirstLook(
            lambda: self.publisher.current.observations.values(), is_settled=self._is_settled
        )
        self.history = self._change_history()
        self._reading = Reading(
            Reader(counted=self.metrics.reader_job), self._documents, lambda: self.publisher.current
        )
        self._validation = validation_of(
            self.settings.validation, self._documents, lambda: self.publisher.current, self.metrics
        )
        self.discovery = self._discovery_watch()
        self._proxy_handler = self._proxying()
        self._gate = gate_of(
            settings,
            self.metrics,
            cluster=cluster,
            identities=self._identities,
            is_authorised_elsewhere=self._proxy_handler.asks_as_the_client,
        )
        self._checker = Worker(timeout=settings.documents.check_timeout)
        self.document_checks = self._checks_of_documents()
        self._catalogue = Worker(timeout=settings.limits.build_timeout)
        self.schemas = self._schema_files()
        self.service = self._service()
        self.server = self._http_server()
        self._memory = MemoryWatch(percent=settings.memory.shed_percent, shed=self._shed)
        self._tasks: list[asyncio.Task[None]] = []
        self._register_collectors()

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
        self._run(self._warm_up(), "the workers could not be started ahead")
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
        """Stop accepting, finish what runs, then let go of everything."""
        if self.history is not None:
            self.history.followers.close()
        await self.server.stop()
        await self._proxy_handler.close()
        if self._gate is not None:
            await self._gate.close()
        await self._memory.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._templates.close()
        await self.backend_sets.close()
        await self.backends.close()
        if self.discovery is not None:
            await self.discovery.close()
        if self.schemas is not None:
            await self.schemas.close()
        if self.history is not None:
            await self.history.close()
        await self._reading.close()
        if self._validation is not None:
            await self._validation.close()
        await self._documents.close()
        self._builder.close()
        self._encoder.close()
        self._catalogue.close()
        self._checker.close()
        if self._state is not None:
            await self._state.close()

    def _run(self, work: Coroutine[Any, Any, None], failure: str) -> None:
        """In the background until ``stop``; ``failure`` is logged when it ends with a bug."""
        task = asyncio.create_task(work)
        log_failure(task, logger, failure)
        self._tasks.append(task)

    async def _warm_up(self) -> None:
        """Have both workers up before the first client waits for one: that takes about a second."""
        await asyncio.gather(self._encoder.start(), self._builder.start())

    def _cluster_source(self, server: Backend, timing: Timing) -> ClusterSource | None:
        if not self.settings.kubernetes.is_source:
            return None
        return ClusterSource(
            server,
            self.settings.kubernetes,
            polling=self.settings.polling,
            identities=self._identities,
            find=self.backend_sets.find,
            changed=partial(self.backends.poke, CUSTOM_RESOURCES),
            templates=self._templates.current,
            wake=self.backends.poke,
            notes=self._state,
            timing=timing,
        )

    def _cluster_templates(self) -> ClusterTemplates:
        templates = ClusterTemplates(
            self._documents,
            self._builder,
            limits=self._limits,
            has_apiserver=self.settings.kubernetes.apiserver,
            changed=partial(self.backends.poke, CUSTOM_RESOURCES),
        )
        self.publisher.subscribe(templates.follow)
        return templates

    def _repository(self) -> Documents:
        return Documents(
            self._representations,
            self._encoder,
            self._state,
            origin_of=self.backends.origin,
            limits=self._limits,
            timed=self.metrics.timed,
        )

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

    def _discovery_watch(self) -> DiscoveryWatch | None:
        if not self.settings.discovery.enabled:
            return None
        synthesis = Synthesis(self._documents, self._builder, limits=self._limits)
        watch = DiscoveryWatch(self.settings, synthesis, pace=self._pace, is_settled=self._is_settled)
        self.publisher.subscribe(watch.follow)
        return watch

    def _checks_of_documents(self) -> DocumentChecks | None:
        if self.settings.documents.check == "off":
            return None
        checks = DocumentChecks(self._documents, self._checker, limits=self._limits)
        self.publisher.subscribe(checks.follow)
        return checks

    def _is_settled(self) -> bool:
        """Whether it is known which backends there are."""
        return self.backend_sets.is_settled and (self.cluster is None or not self.cluster.pending)

    def _shed(self) -> int:
        """Drop forms because memory is short, with what else keeps their bytes; how many they were."""
        shed = self._representations.shed()
        if shed:
            self.server.forget_bodies()
        return shed

    def _schema_files(self) -> SchemaFiles | None:
        settings = self.settings.schemas
        if not settings.enabled:
            return None
        is_open = settings.access == "anonymous" or not self.settings.auth.is_private
        return SchemaFiles(
            lambda: self.publisher.current,
            self._documents,
            self._catalogue,
            limits=self._limits,
            access=Access(is_private=not is_open, is_anonymous=is_open),
            max_bytes=settings.max_bytes,
            release=self._release,
            base=settings.base_url,
            tokens=None if settings.token_file is None else PathTokens(settings.token_file),
        )

    def _release(self) -> str | None:
        """Of the cluster, as far as known."""
        if self.settings.schemas.release is not None or self.discovery is None:
            return self.settings.schemas.release
        return release_in(self.discovery.index.directory.version)

    def _change_history(self) -> History | None:
        if not self.settings.changes.enabled:
            return None
        return change_history(
            self.settings,
            self._builder,
            self._state,
            documents=self._documents,
            publisher=self.publisher,
            registry=self.metrics.registry,
        )

    def _endpoints(self) -> dict[str, Endpoint]:
        """By the path that all of theirs begin with."""
        found: dict[str, Endpoint] = {}
        if self.schemas is not None:
            found[PREFIX] = self.schemas
        if self.history is not None:
            is_private = self.settings.auth.is_private
            found[f"{CHANGES_PATH}/"] = ChangesEndpoint(self.history, is_private=is_private)
        return found

    def _streams(self) -> StreamingHandler:
        """What answers beside the service: backends, the stream of changes, the check of objects."""
        streams: StreamingHandler = self._proxy_handler
        if self.history is not None:
            private = self.settings.auth.is_private
            streams = ChangeStreams(self.history.followers, streams, is_private=private)
        if self._validation is not None:
            streams = ValidationStreams(self._validation, streams)
        return streams

    def _service(self) -> Service:
        pages = self._pages()
        reading = reading_endpoints(
            self._reading,
            status=pages.status,
            log=None if self.history is None else self.history.log,
            is_private=self.settings.auth.is_private,
            has_swagger=self.settings.ui.swagger,
        )
        return Service(
            self.publisher,
            self._representations,
            self._documents,
            refresher_of=self.backends.refresher,
            pages=pages.by_path(),
            endpoints=self._endpoints() | reading,
            discovery=self.discovery,
            is_private=self.settings.auth.is_private,
            is_looking=self._first_look.runs,
        )

    def _proxying(self) -> ProxyHandler:
        return ProxyHandler(
            lambda: self.publisher.current,
            self.metrics,
            proxy=self.settings.proxy,
            polling=self.settings.polling,
            limits=self.settings.limits,
            identities=self._identities,
            clients_have_certificates=self.settings.auth.mode == "mtls",
            is_private=self.settings.auth.is_private,
            max_waiting=self.settings.listen.max_in_flight,
        )

    def _http_server(self) -> HTTPServer:
        return HTTPServer(
            self.service,
            self.settings.listen,
            slow_request=self.settings.log.slow_request,
            guard=LoopbackHosts(self._gate) if self._is_for_one_user else self._gate,
            streaming=self._streams(),
            client_ca_file=self.settings.auth.ca_file,
        )

    def _pages(self) -> Pages:
        return Pages(
            self.publisher,
            self.backends,
            self._representations,
            self.metrics,
            version=VERSION,
            config=self.config,
            auth_complaint=lambda: None if self._gate is None else self._gate.complaint(),
            discovery=self.discovery,
            backend_sets=self.backend_sets,
            cluster=self.cluster,
            document_checks=self.document_checks,
        )

    def _register_collectors(self) -> None:
        registry = self.metrics.registry
        registry.register(
            StateCollector(
                snapshot=lambda: self.publisher.current,
                checks=self.backends.checks,
                usage=self._representations.usage,
                now=time.time,
                unavailable=lambda: {} if self.cluster is None else self.cluster.unavailable,
            )
        )
        registry.register(SourceCollector(lambda: {} if self.cluster is None else self.cluster.watches))
        registry.register(RequestCollector(self.server.stats.snapshot, moved=lambda: self.service.moved))
        registry.register(LimitCollector(self.settings, memory=lambda: self._memory.state))
        if self.schemas is not None:
            registry.register(SchemaCollector(self.schemas))
        if self.document_checks is not None:
            registry.register(DocumentCheckCollector(self.document_checks))
        if self.discovery is not None:
            registry.register(DiscoveryCollector(self.discovery, snapshot=lambda: self.publisher.current))
        ProcessCollector(registry=registry)

"""The composition root: the only place where the parts of the service are put together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from specmux_aggregator.auth.modes import gate_of, warn_of_exposure
from specmux_aggregator.backend_sets import BackendSets
from specmux_aggregator.backends import Backends
from specmux_aggregator.discovery.asking import BackendDiscovery
from specmux_aggregator.discovery.following import Follower, polling_of
from specmux_aggregator.discovery.metrics import DiscoveryCollector
from specmux_aggregator.discovery.synthesising import Synthesis
from specmux_aggregator.discovery.watch import DiscoveryWatch
from specmux_aggregator.documents import Documents
from specmux_aggregator.fetch import BackendClient
from specmux_aggregator.kubernetes.cluster_backends import CUSTOM_RESOURCES
from specmux_aggregator.kubernetes.source import API_SERVICES, ClusterSource
from specmux_aggregator.kubernetes.source_metrics import SourceCollector
from specmux_aggregator.kubernetes.watch import Timing
from specmux_aggregator.limit_metrics import LimitCollector
from specmux_aggregator.memory_watch import MemoryWatch
from specmux_aggregator.metrics import Metrics, RequestCollector, StateCollector
from specmux_aggregator.model import Backend, Dialect, Failure, Kind, Observation, Snapshot
from specmux_aggregator.origins.crds import CRDsOrigin, Manifests
from specmux_aggregator.origins.directory import DirectoryOrigin
from specmux_aggregator.origins.files import Folder
from specmux_aggregator.origins.http import HTTPOrigin
from specmux_aggregator.origins.origin import Origin
from specmux_aggregator.pages import Pages
from specmux_aggregator.publisher import Publisher
from specmux_aggregator.refresh import Refresher
from specmux_aggregator.relay.relaying import Relaying
from specmux_aggregator.representations import Representations
from specmux_aggregator.server import HTTPServer
from specmux_aggregator.service import Service
from specmux_aggregator.settings import Polling, Settings
from specmux_aggregator.sightings import Seen, Sighting
from specmux_aggregator.state import StateDirectory
from specmux_aggregator.workers import Worker
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.group_versions import GroupVersion

logger = logging.getLogger(__name__)

DISCOVERY_TIMEOUT = 5.0
"""Seconds for one answer of discovery, at most."""

DIRECTORY_INTERVAL = 1.0
"""Seconds between looks at a directory, at most: they cost a stat per file, and somebody waits for their
edit."""


class App:
    """One running service. Started once and stopped once, on one event loop."""

    def __init__(
        self,
        settings: Settings,
        state: StateDirectory | None,
        *,
        cluster: Backend | None = None,
        watch_timing: Timing | None = None,
    ) -> None:
        """Takes ownership of ``state``. Nothing runs before ``start``.

        ``cluster``: the apiserver that is a source of backends, or decides who may ask, where the settings
        want one to. Raises InvalidConfig when what callers are known by cannot be used.
        """
        self.settings = settings
        self.metrics = Metrics(CollectorRegistry())
        self._gate = gate_of(
            settings,
            self.metrics,
            cluster=cluster,
            is_authorised_elsewhere=lambda message: self._relaying.asks_as_the_client(message),
        )
        self._state = state
        self._limits = DocumentLimits(
            max_bytes=settings.limits.max_document_bytes, max_depth=settings.limits.max_depth
        )
        # Two processes, so that the conversion of one backend's document never delays a client's encoding.
        self._builder = Worker(timeout=settings.limits.build_timeout)
        self._encoder = Worker(timeout=settings.limits.build_timeout)
        self._config_state: Mapping[str, Any] = {"error": None}
        self._representations = Representations(
            max_bytes=settings.memory.documents_bytes, on_evict=lambda: self.service.forget_answers()
        )
        self.discovery = (
            DiscoveryWatch(
                make=self._follower, grace=settings.discovery.stale_grace, is_settled=self._is_settled
            )
            if settings.discovery.enabled
            else None
        )
        self.publisher = Publisher(
            self._representations, timed=self.metrics.timed, published=self._snapshot_published
        )
        self.backends = Backends(self.publisher, make=self._refresher, restore=self._restored)
        self.backend_sets = BackendSets(self._put_in_force)
        self.cluster = None if cluster is None else self._cluster_source(cluster, watch_timing or Timing())
        self._following: asyncio.Task[None] | None = None
        self._documents = Documents(
            self._representations,
            self._encoder,
            state,
            origin_of=self.backends.origin,
            limits=self._limits,
            timed=self.metrics.timed,
        )
        self.service = Service(
            self.publisher,
            self._representations,
            self._documents,
            refresher_of=self.backends.refresher,
            pages=self._pages().by_path(),
            discovery=self.discovery,
            is_private=settings.auth.is_private,
        )
        self._relaying = Relaying(
            lambda: self.publisher.current,
            self.metrics,
            proxy=settings.proxy,
            polling=settings.polling,
            limits=settings.limits,
            clients_have_certificates=settings.auth.mode == "mtls",
            is_private=settings.auth.is_private,
        )
        self.server = HTTPServer(
            self.service,
            settings.listen,
            slow_request=settings.log.slow_request,
            guard=self._gate,
            relay=self._relaying,
            client_ca_file=settings.auth.ca_file,
        )
        self._memory = MemoryWatch(percent=settings.memory.shed_percent, shed=self._shed)
        self._register_collectors()

    async def start(self) -> tuple[str, int]:
        """Listen, then watch the backends; returns the address and port bound. Waits for no backend."""
        warn_of_exposure(self.settings)
        bound = await self.server.start()
        if self._gate is not None:
            self._gate.start()
        self._memory.start()
        if self.cluster is not None:
            self._following = asyncio.create_task(self._follow_cluster(self.cluster), name="cluster")
            self._following.add_done_callback(_tell_bug)
        await self.backend_sets.configure(self.settings.backends)
        return bound

    async def reconfigure(self, settings: Settings) -> None:
        """Put other configured backends in force. All other settings stay as they were at the start."""
        await self.backend_sets.configure(settings.backends)
        self.note_config(error=None)
        logger.info("configuration reloaded: %d backends", len(settings.backends))

    def note_config(self, *, error: str | None) -> None:
        """How the configuration was last read; with an error the one before stays in force."""
        self._config_state = {"error": error}
        self.metrics.config_reloads.labels("failed" if error else "ok").inc()
        self.metrics.config_is_current.set(0 if error else 1)

    async def stop(self) -> None:
        """Stop accepting, finish what runs, then let go of everything."""
        await self.server.stop()
        await self._relaying.close()
        if self._gate is not None:
            await self._gate.close()
        await self._memory.close()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self.backend_sets.close()
        await self.backends.close()
        if self.discovery is not None:
            await self.discovery.close()
        await self._documents.close()
        self._builder.close()
        self._encoder.close()
        if self._state is not None:
            await self._state.close()

    def _cluster_source(self, server: Backend, timing: Timing) -> ClusterSource | None:
        if not self.settings.kubernetes.is_source:
            return None
        return ClusterSource(
            server,
            self.settings.kubernetes,
            polling=self.settings.polling,
            find=self.backend_sets.find,
            changed=self._definitions_changed,
            note=partial(self._note_services, server),
            timing=timing,
        )

    def _definitions_changed(self) -> None:
        refresher = self.backends.refresher(CUSTOM_RESOURCES)
        if refresher is not None:
            refresher.poke()

    def _note_services(self, server: Backend, note: bytes) -> None:
        if self._state is not None:
            self._state.note(server, API_SERVICES, note)

    async def _follow_cluster(self, cluster: ClusterSource) -> None:
        recalled = None
        if self._state is not None:
            recalled = await self._state.recall(cluster.server, API_SERVICES)
        await cluster.run(recalled)

    async def _put_in_force(self, backends: tuple[Backend, ...]) -> None:
        before = {observation.backend.name for observation, _ in self.backends.checks()}
        await self.backends.apply(backends)
        for name in before - {backend.name for backend in backends}:
            self.metrics.forget_backend(name)

    async def _restored(self, backend: Backend) -> Observation | None:
        return None if self._state is None else await self._state.restore(backend)

    async def _publish(self, observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        await self.publisher.publish(observation, bodies)
        if self._state is not None:
            self._state.remember(observation, bodies)

    def _refresher(self, observation: Observation) -> Refresher:
        backend = observation.backend
        polling = self.settings.polling
        if backend.kind.is_directory:
            polling = replace(polling, interval=min(polling.interval, DIRECTORY_INTERVAL))
        return Refresher(
            self._origin(backend, polling),
            observation,
            polling=polling,
            publish=self._publish,
            observed=self._observed,
        )

    def _origin(self, backend: Backend, polling: Polling) -> Origin:
        limits = self.settings.limits
        if backend.kind is Kind.DIRECTORY:
            return DirectoryOrigin(
                backend,
                self._folder(backend),
                self._builder,
                limits=self._limits,
                max_group_versions=limits.max_group_versions,
            )
        if backend.kind is Kind.CRDS:
            return CRDsOrigin(backend, self._manifests(backend), self._builder, limits=self._limits)
        return HTTPOrigin(
            backend,
            BackendClient(backend, polling=polling, limits=limits),
            self._builder,
            limits=self._limits,
            max_group_versions=limits.max_group_versions,
            v3_probe_interval=polling.v3_probe_interval,
        )

    def _manifests(self, backend: Backend) -> Manifests:
        if self.cluster is not None and backend.found is not None:
            return self.cluster.manifests
        return self._folder(backend)

    def _folder(self, backend: Backend) -> Folder:
        if backend.directory is None:
            raise ValueError(f"backend {backend.name} has no directory")
        limits = self.settings.limits
        return Folder(
            backend.directory, max_files=limits.max_group_versions, max_bytes=limits.max_document_bytes
        )

    def _follower(self, observation: Observation) -> Follower:
        backend = observation.backend
        settings = self.settings
        polling = polling_of(
            settings.polling, interval=settings.discovery.interval, timeout=DISCOVERY_TIMEOUT
        )
        asked = None
        if backend.url:
            asked = BackendDiscovery(
                backend,
                BackendClient(backend, polling=polling, limits=settings.limits),
                limits=DocumentLimits(
                    max_bytes=settings.limits.max_root_bytes, max_depth=settings.limits.max_depth
                ),
                max_group_versions=settings.limits.max_group_versions,
            )
        return Follower(
            observation,
            asked,
            Synthesis(self._documents, self._builder, limits=self._limits),
            polling=polling,
            changed=self._discovery_changed,
        )

    def _is_settled(self) -> bool:
        """Whether it is known which backends there are."""
        return self.backend_sets.is_settled and (self.cluster is None or not self.cluster.pending)

    def _discovery_changed(self) -> None:
        if self.discovery is not None:
            self.discovery.changed()

    def _snapshot_published(self, snapshot: Snapshot) -> None:
        if self.discovery is not None:
            self.discovery.follow(snapshot)

    def _observed(self, observation: Observation, sighting: Sighting, seconds: float) -> None:
        """Count one check of a backend."""
        if isinstance(sighting, Failure):
            self.metrics.timed("poll", "failed", seconds)
            self.metrics.backend_failures.labels(observation.backend.name, sighting.cause.value).inc()
            return
        is_built = isinstance(sighting, Seen) and sighting.dialect is not Dialect.V3 and sighting.bodies
        self.metrics.timed("convert" if is_built else "poll", "ok", seconds)
        if isinstance(sighting, Seen):
            for duration in sighting.seconds.values():
                self.metrics.crd_aggregation.observe(duration)
        if isinstance(sighting, Seen) and sighting.dialect is Dialect.V2:
            for group_version in sighting.bodies:
                is_lossy = bool(sighting.offers[group_version].losses)
                self.metrics.conversions.labels("true" if is_lossy else "false").inc()

    def _shed(self) -> int:
        """Let go of forms for want of memory, with what else keeps their bytes; how many they were."""
        shed = self._representations.shed()
        if shed:
            self.server.forget_bodies()
        return shed

    def _pages(self) -> Pages:
        return Pages(
            self.publisher,
            self.backends,
            self._representations,
            self.metrics,
            version=version("specmux"),
            config_state=lambda: self._config_state,
            auth_complaint=lambda: None if self._gate is None else self._gate.complaint(),
            discovery=self.discovery,
            backend_sets=self.backend_sets,
            cluster=self.cluster,
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
        if self.discovery is not None:
            registry.register(DiscoveryCollector(self.discovery, snapshot=lambda: self.publisher.current))
        ProcessCollector(registry=registry)


def _tell_bug(following: asyncio.Task[None]) -> None:
    if not following.cancelled() and (error := following.exception()) is not None:
        logger.error("the cluster is no longer followed", exc_info=error)


async def open_state(settings: Settings) -> StateDirectory | None:
    """The state directory, where one is configured and can be used."""
    if settings.state.directory is None:
        return None
    return await asyncio.to_thread(
        StateDirectory.open,
        settings.state.directory,
        max_bytes=settings.state.max_bytes,
        max_document_bytes=settings.limits.max_document_bytes,
    )

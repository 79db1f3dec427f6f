"""The parts of a service in order of dependency: what is published, where it comes from, what answers.

``app`` creates them in this order, and starts and stops them. Each part knows only earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.new_refresher import Refreshers
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.api_discovery.synthesis import Synthesis
from specmux_aggregator.api_discovery.watch import discovery_of
from specmux_aggregator.auth.token_file import FollowedTokenFile
from specmux_aggregator.changes.events import MOST_OF_ADDRESS
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.metrics import ChangeMetrics
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.deltas import Deltas
from specmux_aggregator.documents.prefetch import DocumentPrefetch
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.openapi_v2 import PATH as SWAGGER_PATH
from specmux_aggregator.endpoints.openapi_v2 import ROUTE as SWAGGER_ROUTE
from specmux_aggregator.endpoints.openapi_v2 import MergedSwagger
from specmux_aggregator.endpoints.routes import Route, RouteTable
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.json_schema_files.answers import PREFIX, ROUTE, SchemaAccess
from specmux_aggregator.json_schema_files.endpoint import SchemaFiles, parse_path_tokens
from specmux_aggregator.metrics.instruments import Metrics, count_check
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.server_union import served_version
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.upstream.body_budget import BODIES, BodyBudget
from specmux_aggregator.upstream.credentials import Identities
from specmux_aggregator.workers.worker import Worker

if TYPE_CHECKING:  # imported where there is a cluster
    from specmux_aggregator.kubernetes.source import ClusterSource
    from specmux_aggregator.kubernetes.watch import Timing


@dataclass(frozen=True, slots=True)
class PublishedParts:
    """The Snapshot, the bytes of its documents, and the workers that build them."""

    publisher: Publisher
    representations: Representations
    documents: DocumentRepository
    workers: Workers
    state: StateDirectory | None


class Sources:
    """The sources of documents and discovery: the running backends, and the cluster that supplies them."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        published: PublishedParts,
        *,
        cluster: Backend | None,
        timing: Timing | None,
    ) -> None:
        self._settings = settings
        builder, pace = published.workers.builder, Pace()
        self.identities = Identities()
        self._refreshers = Refreshers(
            builder=builder,
            identities=self.identities,
            bodies=BodyBudget(BODIES * settings.limits.max_document_bytes),
            settings=settings,
            publish=published.publisher.publish,
            observed=partial(count_check, metrics),
            pace=pace,
        )
        self.backends = Backends(
            published.publisher,
            make=self._refresher,
            restore=None if published.state is None else published.state.restore,
            forget=metrics.forget_backend,
        )
        self.backend_sets = BackendSets(self.backends.apply)
        self.cluster = self._cluster_of(cluster, published, timing)
        self.discovery = discovery_of(
            settings,
            published.publisher,
            Synthesis(published.documents, builder, limits=settings.limits.of_documents),
            pace=pace,
            is_settled=self.is_settled,
        )
        self.first_look = FirstLook(
            lambda: published.publisher.current.observations.values(), is_settled=self.is_settled
        )

    def is_settled(self) -> bool:
        """Whether the set of backends is known."""
        return self.backend_sets.is_settled and (self.cluster is None or not self.cluster.pending)

    def _refresher(self, observation: Observation) -> Refresher:
        return self._refreshers.refresher_of(
            observation,
            manifests=None if self.cluster is None else self.cluster.manifests,
            follow=None if self.discovery is None else self.discovery.follower,
        )

    def _cluster_of(
        self, server: Backend | None, published: PublishedParts, timing: Timing | None
    ) -> ClusterSource | None:
        """A new source; whoever asks for it runs it. None where there is no cluster, or none to take backends
        from."""
        settings = self._settings
        if server is None or not settings.kubernetes.is_source:
            return None
        from specmux_aggregator.kubernetes.api_client import ApiClient
        from specmux_aggregator.kubernetes.cluster_backends import CUSTOM_RESOURCES
        from specmux_aggregator.kubernetes.shared_crd_parts import ClusterTemplates
        from specmux_aggregator.kubernetes.source import ClusterSource
        from specmux_aggregator.kubernetes.watch import Timing

        changed = partial(self.backends.poke, CUSTOM_RESOURCES)
        templates = ClusterTemplates(
            published.documents,
            published.workers.builder,
            limits=settings.limits.of_documents,
            has_apiserver=settings.kubernetes.apiserver,
            changed=changed,
        )
        source = ClusterSource(
            ApiClient(server, polling=settings.polling, identities=self.identities),
            settings.kubernetes,
            find=self.backend_sets.find,
            changed=changed,
            templates=templates,
            wake=self.backends.poke,
            notes=published.state,
            timing=timing or Timing(),
        )
        published.publisher.subscribe(templates.follow)
        published.publisher.subscribe(source.follow)
        return source


def published_parts_of(
    settings: Settings, metrics: Metrics, state: StateDirectory | None, sources: Callable[[], Sources]
) -> PublishedParts:
    """``sources``: returns the sources made with it, which are asked when a document is fetched."""
    representations = Representations(max_bytes=settings.memory.documents_bytes)
    workers = Workers(settings)
    publisher = Publisher(representations, timed=metrics.record_duration, archive=state)

    def failure_of(name: BackendName) -> Failure | None:
        observation = publisher.current.observations.get(name)
        return None if observation is None else observation.failure

    documents = DocumentRepository(
        representations,
        workers.encoder,
        state,
        origin_of=lambda name: sources().backends.origin(name),
        limits=settings.limits.of_documents,
        timed=metrics.record_duration,
        failure_of=failure_of,
    )
    return PublishedParts(publisher, representations, documents, workers, state)


def cluster_version_of(sources: Sources) -> Callable[[], str | None]:
    """The version whose rules the backend that answers ``/version`` applies, else the release that the
    documents of the cluster tell; None if unknown."""
    discovery, cluster = sources.discovery, sources.cluster

    def version() -> str | None:
        told = None if discovery is None else served_version(discovery.index.directory.version)
        return told if told is not None or cluster is None else cluster.release

    return version


def history_of(
    settings: Settings,
    published: PublishedParts,
    registry: CollectorRegistry,
    *,
    is_looking: Callable[[], bool],
) -> History | None:
    """A new, subscribed history; the caller starts and closes it. None if it is off. ``is_looking``: as in
    ``History``."""
    if not settings.changes.enabled:
        return None
    metrics = ChangeMetrics(
        registry,
        snapshot=lambda: published.publisher.current,
        most_series=settings.limits.group_version_series,
    )
    history = History(
        settings.changes,
        published.workers.builder,
        published.state,
        held=published.documents.find_json,
        obtain=published.documents.obtain_gzip,
        limits=settings.limits.of_documents,
        noted=metrics.note_entry,
        # An unlimited number of followers per address means a proxy or NAT in front, so an address is not one
        # client.
        most_of_address=MOST_OF_ADDRESS if settings.listen.max_connections_per_address else 0,
        is_looking=is_looking,
    )
    metrics.watch(history)
    published.publisher.subscribe(history.follow)
    published.documents.subscribe(history.note_fetched)
    return history


def deltas_of(settings: Settings, published: PublishedParts, history: History | None) -> Deltas | None:
    """None if it is off, or without a history, which keeps former documents. The caller closes it."""
    if history is None or not settings.dictionaries.enabled:
        return None
    return Deltas(
        published.workers.encoder,
        settings.dictionaries,
        is_kept=history.is_kept,
        document=history.document,
        limits=settings.limits.of_documents,
    )


def prefetch_of(settings: Settings, published: PublishedParts) -> DocumentPrefetch | None:
    """A new prefetch that follows publications; None if it is off. The caller runs it."""
    wanted = settings.documents.prefetch
    if wanted == "off":
        return None

    def is_wanted(snapshot: Snapshot, key: DocumentKey) -> bool:
        return wanted == "on" or snapshot.observations[key.owner].backend.found is not None

    prefetch = DocumentPrefetch(published.documents, published.representations, is_wanted=is_wanted)
    published.publisher.subscribe(prefetch.follow)
    return prefetch


def schema_files_of(settings: Settings, published: PublishedParts, sources: Sources) -> SchemaFiles | None:
    """None if JSON Schemas are off. Their release is the cluster's unless the settings name one."""
    wanted = settings.schemas
    if not wanted.enabled:
        return None
    is_open = wanted.access == "anonymous" or not settings.auth.is_private
    version = cluster_version_of(sources)
    return SchemaFiles(
        lambda: published.publisher.current,
        published.documents,
        published.workers.catalogue,
        limits=settings.limits.of_documents,
        access=SchemaAccess(is_private=not is_open, is_anonymous=is_open, base=wanted.base_url or ""),
        max_bytes=wanted.max_bytes,
        release=lambda: wanted.release if wanted.release is not None else version(),
        tokens=None
        if wanted.token_file is None
        else FollowedTokenFile(wanted.token_file, parse_path_tokens, setting="schemas.token_file"),
    )


def merged_swagger_of(
    settings: Settings, published: PublishedParts, sources: Sources
) -> MergedSwagger | None:
    """None if the service does not merge ``/openapi/v2``."""
    if settings.documents.openapi_v2 != "merged":
        return None
    return MergedSwagger(
        lambda: published.publisher.current,
        published.documents,
        published.representations,
        published.workers.catalogue,
        limits=settings.limits.of_documents,
        is_private=settings.auth.is_private,
        is_looking=sources.first_look.runs,
    )


def service_of(
    settings: Settings,
    published: PublishedParts,
    sources: Sources,
    *,
    routes: Iterable[Route],
    deltas: Deltas | None,
) -> Service:
    return Service(
        published.publisher,
        published.representations,
        published.documents,
        refresher_of=sources.backends.refresher,
        routes=RouteTable(routes),
        discovery=sources.discovery,
        is_private=settings.auth.is_private,
        first_look=sources.first_look,
        deltas=deltas,
    )


def schema_routes(schemas: SchemaFiles | None) -> list[Route]:
    return [] if schemas is None else [Route(PREFIX, schemas, ROUTE, fields=schemas.fields)]


def swagger_routes(swagger: MergedSwagger | None) -> list[Route]:
    return [] if swagger is None else [Route(SWAGGER_PATH, swagger, SWAGGER_ROUTE)]


class Workers:
    """The worker processes of a service, one for each kind of work that must not wait for another. They start
    with their first work; two are started ahead."""

    def __init__(self, settings: Settings) -> None:
        build_timeout = settings.limits.build_timeout
        self.builder = Worker(timeout=build_timeout)
        """Builds documents that backends changed."""
        self.encoder = Worker(timeout=build_timeout)
        """Encodes documents for clients: the conversion of a backend's document never delays it."""
        self.catalogue = Worker(timeout=build_timeout)
        """Makes JSON Schemas."""
        self.checker = Worker(timeout=settings.documents.check_timeout)
        """Checks documents against their standard."""

    async def warm_up(self) -> None:
        """Start the processes that a first client would otherwise wait about a second for."""
        await asyncio.gather(self.encoder.start(), self.builder.start())

    async def close(self) -> None:
        every = (self.builder, self.encoder, self.catalogue, self.checker)
        await asyncio.gather(*(worker.close() for worker in every))

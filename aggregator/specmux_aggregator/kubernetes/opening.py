"""A cluster as the source of backends, connected with what it feeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.jobs.worker import Worker
from specmux_aggregator.kubernetes.cluster_backends import CUSTOM_RESOURCES
from specmux_aggregator.kubernetes.source import ClusterSource, ServiceNotes
from specmux_aggregator.kubernetes.templates import ClusterTemplates
from specmux_aggregator.kubernetes.watch import Timing
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.upstream.identities import Identities


def cluster_of(
    server: Backend | None,
    settings: Settings,
    *,
    backends: Backends,
    find: Callable[[tuple[Backend, ...]], None],
    publisher: Publisher,
    documents: DocumentRepository,
    builder: Worker,
    identities: Identities,
    notes: ServiceNotes | None,
    timing: Timing | None,
) -> ClusterSource | None:
    """A new source; whoever asks for it runs it. None where there is no cluster, or none to take backends
    from. ``find``: as of ClusterSource."""
    if server is None or not settings.kubernetes.is_source:
        return None
    changed = partial(backends.poke, CUSTOM_RESOURCES)
    templates = ClusterTemplates(
        documents,
        builder,
        limits=settings.limits.of_documents,
        has_apiserver=settings.kubernetes.apiserver,
        changed=changed,
    )
    publisher.subscribe(templates.follow)
    source = ClusterSource(
        server,
        settings.kubernetes,
        polling=settings.polling,
        identities=identities,
        find=find,
        changed=changed,
        templates=templates,
        wake=backends.poke,
        notes=notes,
        timing=timing or Timing(),
    )
    publisher.subscribe(source.follow)
    return source

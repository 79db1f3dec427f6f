"""The history of changes, told of what is published and fetched, with its metrics, and what asks it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.changes.endpoint import PATH, ChangesEndpoint
from specmux_aggregator.changes.events import MOST_OF_ADDRESS
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.metrics import ChangeMetrics
from specmux_aggregator.changes.stream import ChangeStreams
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.endpoints.service import Endpoint
from specmux_aggregator.jobs.worker import Worker
from specmux_aggregator.server.protocols import Guard, StreamingHandler


def change_history(
    settings: Settings,
    builder: Worker,
    state: StateDirectory | None,
    *,
    documents: DocumentRepository,
    publisher: Publisher,
    registry: CollectorRegistry,
) -> History | None:
    """A new history, subscribed to both; whoever asks for it starts and closes it. None where it is off."""
    if not settings.changes.enabled:
        return None
    metrics = ChangeMetrics(registry, snapshot=lambda: publisher.current)
    history = History(
        settings.changes,
        builder,
        state,
        held=documents.held,
        obtain=documents.gzipped,
        limits=settings.limits.of_documents,
        noted=metrics.noted,
        # Whoever lifts the cap of an address has a proxy or a NAT in front: that address is no one client.
        most_of_address=MOST_OF_ADDRESS if settings.listen.max_connections_per_address else 0,
    )
    metrics.watch(history)
    publisher.subscribe(history.follow)
    documents.subscribe(history.fetched)
    return history


def change_endpoints(history: History | None, *, is_private: bool) -> dict[str, Endpoint]:
    """By the path that all of theirs begin with."""
    return {} if history is None else {f"{PATH}/": ChangesEndpoint(history, is_private=is_private)}


def with_change_streams(
    history: History | None, others: StreamingHandler, *, is_private: bool, guard: Guard | None
) -> StreamingHandler:
    """The stream of changes, and ``others`` for what is not asked of it."""
    if history is None:
        return others
    return ChangeStreams(history.followers, others, is_private=is_private, guard=guard)

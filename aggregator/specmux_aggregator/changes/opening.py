"""Create the change history, with its metrics, subscribed to publications and fetched documents."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from specmux_aggregator.changes.endpoint import PATH, ROUTE, ChangesEndpoint
from specmux_aggregator.changes.events import MOST_OF_ADDRESS
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.metrics import ChangeMetrics
from specmux_aggregator.changes.stream import ChangeStreams
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.endpoints.routes import Route
from specmux_aggregator.parts import PublishedParts
from specmux_aggregator.server.protocols import Guard, StreamingHandler
from specmux_aggregator.workers.worker import Worker


def change_history(
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
        held=published.documents.held,
        obtain=published.documents.gzipped,
        limits=settings.limits.of_documents,
        noted=metrics.noted,
        # An unlimited number of followers per address means a proxy or NAT in front, so an address is not one
        # client.
        most_of_address=MOST_OF_ADDRESS if settings.listen.max_connections_per_address else 0,
        is_looking=is_looking,
    )
    metrics.watch(history)
    published.publisher.subscribe(history.follow)
    published.documents.subscribe(history.fetched)
    return history


def change_routes(history: History | None, worker: Worker, *, is_private: bool) -> list[Route]:
    if history is None:
        return []
    return [Route(f"{PATH}/", ChangesEndpoint(history, worker, is_private=is_private), ROUTE)]


def change_streams(
    history: History | None, *, is_private: bool, guard: Guard | None
) -> list[StreamingHandler]:
    if history is None:
        return []
    return [ChangeStreams(history.followers, is_private=is_private, guard=guard)]

"""The history of changes, told of what is published and fetched, with its metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.build.worker import Worker
from specmux_aggregator.changes.history import History
from specmux_aggregator.changes.metrics import ChangeMetrics
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.repository import Documents


def change_history(
    settings: Settings,
    builder: Worker,
    state: StateDirectory | None,
    *,
    documents: Documents,
    publisher: Publisher,
    registry: CollectorRegistry,
) -> History:
    """A new history, subscribed to both; whoever asks for it starts and closes it."""
    metrics = ChangeMetrics(registry, snapshot=lambda: publisher.current)
    history = History(
        settings.changes,
        builder,
        state,
        held=documents.held,
        obtain=documents.gzipped,
        limits=settings.limits.of_documents,
        noted=metrics.noted,
    )
    metrics.watch(history)
    publisher.subscribe(history.follow)
    documents.subscribe(history.fetched)
    return history

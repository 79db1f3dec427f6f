"""The refresher of a backend: what checks it, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.refresher import DocumentsFollower, Publish, Refresher
from specmux_aggregator.backend_sources.manifests import Manifests
from specmux_aggregator.backend_sources.new_source import origin_of
from specmux_aggregator.backend_sources.outcome import Outcome
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.upstream.body_budget import BodyBudget
from specmux_aggregator.upstream.credentials import Identities
from specmux_aggregator.workers.worker import Worker

if TYPE_CHECKING:  # imported where a backend has a URL
    from specmux_aggregator.backend_sources.servers import ServerSet

DIRECTORY_INTERVAL: Final = 1.0
"""The longest interval in seconds between checks of a directory: they cost a stat per file, and someone waits
to see an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshers:
    """Makes the refreshers of all backends."""

    builder: Worker
    identities: Identities
    bodies: BodyBudget
    settings: Settings
    publish: Publish
    observed: Callable[[Observation, Outcome, float], None]
    pace: Pace

    def refresher_of(
        self,
        observation: Observation,
        *,
        manifests: Manifests | None,
        follow: Callable[[Observation, ServerSet | None], DocumentsFollower] | None,
    ) -> Refresher:
        """A new refresher; the caller runs it. ``manifests``: those of a watched cluster. ``follow``: creates
        what follows the documents and asks the same servers."""
        backend, polling, limits = observation.backend, self.settings.polling, self.settings.limits
        servers = self._servers_of(backend) if backend.url or backend.urls else None
        if backend.kind.is_directory:
            polling = replace(polling, interval=min(polling.interval, DIRECTORY_INTERVAL))
        origin = origin_of(
            backend,
            self.builder,
            manifests=manifests,
            servers=servers,
            polling=polling,
            limits=limits,
        )
        return Refresher(
            origin,
            observation,
            polling=polling,
            publish=self.publish,
            observed=self.observed,
            follower=None if follow is None else follow(observation, servers),
            pace=self.pace,
        )

    def _servers_of(self, backend: Backend) -> ServerSet:
        from specmux_aggregator.backend_sources.servers import ServerSet
        from specmux_aggregator.upstream.client import BackendClient

        connect = {
            url: partial(
                BackendClient,
                replace(backend, url=url),
                polling=self.settings.polling,
                limits=self.settings.limits,
                identities=self.identities,
                bodies=self.bodies,
            )
            for url in (backend.urls or (backend.url,))
        }
        # Behind a proxy, the proxy resolves the name.
        return ServerSet(connect, has_addresses=backend.proxy_url is None)

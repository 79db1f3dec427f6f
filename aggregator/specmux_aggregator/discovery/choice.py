"""How the discovery of a backend is followed: asked of it where it can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from specmux_aggregator.config.settings import Polling, Settings
from specmux_aggregator.discovery.client import BackendDiscovery
from specmux_aggregator.discovery.follower import Follower
from specmux_aggregator.discovery.synthesis import Synthesis
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.upstream.body_budget import BodyBudget
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.identities import Identities

TIMEOUT: Final = 5.0
"""Seconds for one answer, at most."""


def follower_of(
    observation: Observation,
    changed: Callable[[], None],
    *,
    synthesis: Synthesis,
    settings: Settings,
    identities: Identities,
    bodies: BodyBudget,
) -> Follower:
    """A new follower; whoever asks for it runs it. ``changed``: called whenever it knows something else."""
    backend, limits = observation.backend, settings.limits
    polling = polling_of(settings.polling, interval=settings.discovery.interval)
    asked = None
    if backend.url:
        asked = BackendDiscovery(
            backend,
            BackendClient(backend, polling=polling, limits=limits, identities=identities, bodies=bodies),
            limits=limits.of_roots,
            max_group_versions=limits.max_group_versions,
        )
    return Follower(observation, asked, synthesis, polling=polling, changed=changed)


def polling_of(polling: Polling, *, interval: float) -> Polling:
    """How discovery is asked for: as the root is, at its own interval and within its own time."""
    return replace(
        polling,
        interval=interval,
        total_timeout=min(TIMEOUT, polling.total_timeout),
        idle_timeout=min(TIMEOUT, polling.idle_timeout),
    )

"""The servers behind the Services of a cluster's backends, watched if permitted.

One watch for all of them, restarted when the set of Services changes. Without permission to read
EndpointSlices no servers are known, and a backend has only its one address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.endpoint_slices import (
    SERVICE_LABEL,
    ServerAddress,
    ServiceName,
    addresses_of,
    keep_slice,
)
from specmux_aggregator.kubernetes.watch import Timing, Watch, WatchState
from specmux_aggregator.kubernetes.watch_events import Object

ENDPOINT_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"


class ServiceEndpoints:
    """Lives on one event loop until ``close``. ``changed`` is called when ``servers`` changes."""

    def __init__(self, client: ApiClient, *, changed: Callable[[], object], timing: Timing) -> None:
        self._client = client
        self._changed = changed
        self._timing = timing
        self._services: frozenset[ServiceName] = frozenset()
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None
        self.servers: Mapping[ServiceName, tuple[ServerAddress, ...]] = {}

    @property
    def state(self) -> WatchState | None:
        return None if self._watch is None else self._watch.state

    async def follow(self, services: Iterable[ServiceName]) -> None:
        """Set the Services to follow."""
        wanted = frozenset(services)
        if wanted == self._services:
            return
        await self.close()
        self._services = wanted
        if not wanted:
            self._watch = self._task = None
            return
        names = ",".join(sorted({name for _, name in wanted}))
        self._watch = Watch(
            self._client,
            ENDPOINT_SLICES,
            selector=f"{SERVICE_LABEL} in ({names})",
            on_change=self._take,
            on_failure=self._note_refusal,
            keep=keep_slice,
            timing=self._timing,
        )
        self._task = asyncio.create_task(self._watch.run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _take(self, objects: Mapping[str, Object]) -> None:
        found = addresses_of(objects.values())
        self._set({service: found[service] for service in self._services if service in found})

    def _note_refusal(self) -> None:
        if self._watch is not None and self._watch.state.phase.is_refusal:
            self._set({})

    def _set(self, servers: dict[ServiceName, tuple[Any, ...]]) -> None:
        if servers != self.servers:
            self.servers = servers
            self._changed()

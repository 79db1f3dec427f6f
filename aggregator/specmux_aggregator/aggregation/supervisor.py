"""The running backends: one refresher and one task for each, replaced when the configuration changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from specmux_aggregator.aggregation.check_schedule import BackendCheck
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.backend_sources.origin import Origin
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.tasks import log_failure

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Running:
    refresher: Refresher
    task: asyncio.Task[None]


class Backends:
    """Runs the configured backends. ``make`` creates a refresher from what is known of its backend,
    ``restore`` returns what was known before the last stop, ``forget`` is called for each backend that is
    gone."""

    def __init__(
        self,
        publisher: Publisher,
        *,
        make: Callable[[Observation], Refresher],
        restore: Callable[[Backend], Awaitable[Observation | None]] | None = None,
        forget: Callable[[BackendName], None] = lambda _: None,
    ) -> None:
        self._publisher = publisher
        self._make = make
        self._restore = restore
        self._forget = forget
        self._running: dict[BackendName, _Running] = {}

    async def apply(self, backends: Iterable[Backend]) -> None:
        """Start, stop and replace refreshers until exactly ``backends`` run. Unchanged backends continue, as
        do those whose rank alone changed.

        Calls must not overlap.
        """
        wanted = {backend.name: backend for backend in backends}
        gone = {
            name: running
            for name, running in self._running.items()
            if name not in wanted or wanted[name].asked != _backend(running).asked
        }
        for name in gone:
            del self._running[name]
        # Stop them before reading what they know: a check may end while others are restored.
        await self._stop(list(gone.values()))
        observations = {
            name: await self._first_observation(backend, gone.get(name))
            for name, backend in wanted.items()
            if name not in self._running
        }
        for name in wanted.keys() & self._running.keys():
            self._running[name].refresher.stand(wanted[name])
        # Read the running ones last: a check may have ended meanwhile.
        current = {
            name: self._running[name].refresher.observation for name in wanted if name in self._running
        }
        await self._publisher.replace_backends({**observations, **current})
        for name in wanted.keys() - self._running.keys():
            refresher = self._make(observations[name])
            task = asyncio.create_task(refresher.run(), name=f"backend {name}")
            log_failure(task, logger, f"backend {name} is no longer looked at")
            self._running[name] = _Running(refresher, task)
        for name in gone.keys() - wanted.keys():
            self._forget(name)

    def poke(self, name: BackendName) -> None:
        """Check the backend of this name at once, if there is one."""
        if (running := self._running.get(name)) is not None:
            running.refresher.poke()

    def refresher(self, name: BackendName) -> Refresher | None:
        running = self._running.get(name)
        return running.refresher if running else None

    def origin(self, name: BackendName) -> Origin | None:
        running = self._running.get(name)
        return running.refresher.origin if running else None

    def checks(self) -> list[tuple[Observation, BackendCheck]]:
        """The observation and the last check of each backend, by name."""
        return [
            (running.refresher.observation, running.refresher.check)
            for _, running in sorted(self._running.items())
        ]

    async def close(self) -> None:
        await self._stop(list(self._running.values()))
        self._running.clear()

    async def _first_observation(self, backend: Backend, before: _Running | None) -> Observation:
        if before is not None and backend.has_content_of(_backend(before)):
            # Only its priority, credentials, group-versions or some servers changed: its offers are valid.
            return replace(before.refresher.observation, backend=backend)
        restored = None if self._restore is None else await self._restore(backend)
        return restored or Observation(backend=backend)

    async def _stop(self, running: list[_Running]) -> None:
        for item in running:
            item.task.cancel()
        results = await asyncio.gather(*(item.task for item in running), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                logger.error("a backend's task ended with %s", type(result).__name__)


def _backend(running: _Running) -> Backend:
    return running.refresher.observation.backend

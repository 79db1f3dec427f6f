"""The backends of the configuration and those found in a cluster, applied together.

Either set may change at any time. Changes are applied one after the other; changes that arrive meanwhile are
combined. The configuration wins: a found backend with the name of a configured one is left out, and
ownership.precedence prefers the configured backend for a contested group-version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.tasks import Coalescer

logger = logging.getLogger(__name__)


class BackendSets:
    """``put`` applies all backends; its calls never overlap."""

    def __init__(self, put: Callable[[tuple[Backend, ...]], Awaitable[None]]) -> None:
        self._put = put
        self._configured: tuple[Backend, ...] = ()
        self._found: tuple[Backend, ...] = ()
        self._in_force = Coalescer(self._put_all, logger=logger, failure="backends could not be put in force")
        self.problems: tuple[str, ...] = ()
        """A message for each found backend that was left out."""

    async def configure(self, backends: tuple[Backend, ...]) -> None:
        """Set the configured backends; returns when they are applied."""
        self._configured = backends
        await asyncio.shield(self._in_force.ask())

    def find(self, backends: tuple[Backend, ...]) -> None:
        """Set the found backends; applied soon, unless nothing changed."""
        if backends != self._found:
            self._found = backends
            self._in_force.ask()

    @property
    def is_settled(self) -> bool:
        """Whether everything configured and found is applied."""
        return self._in_force.is_settled

    async def close(self) -> None:
        """Return when nothing is being applied any more."""
        await self._in_force.close()

    async def _put_all(self) -> None:
        names = {backend.name for backend in self._configured}
        found = tuple(backend for backend in self._found if backend.name not in names)
        self._tell(tuple(backend.name for backend in self._found if backend.name in names))
        await self._put((*self._configured, *found))

    def _tell(self, left_out: tuple[str, ...]) -> None:
        problems = tuple(f"{name}: the configuration has a backend of this name" for name in left_out)
        for problem in problems:
            if problem not in self.problems:
                logger.warning("not taken from the cluster: %s", problem)
        self.problems = problems

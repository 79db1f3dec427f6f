"""The backends of the configuration and those that were found in a cluster, put in force together.

Either set may change at any time; changes are put in force one after the other, and those that come while
one is, as one. The configuration wins: a found backend whose name it uses is left out, and of a contested
group-version ownership.precedence takes the configured backend.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.tasks import Coalescer

logger = logging.getLogger(__name__)


class BackendSets:
    """``put`` puts all backends in force; it is never called while it runs."""

    def __init__(self, put: Callable[[tuple[Backend, ...]], Awaitable[None]]) -> None:
        self._put = put
        self._configured: tuple[Backend, ...] = ()
        self._found: tuple[Backend, ...] = ()
        self._in_force = Coalescer(self._put_all, logger=logger, failure="backends could not be put in force")
        self.problems: tuple[str, ...] = ()
        """Found backends that were left out, in words."""

    async def configure(self, backends: tuple[Backend, ...]) -> None:
        """Returns when they are in force."""
        self._configured = backends
        await asyncio.shield(self._in_force.ask())

    def find(self, backends: tuple[Backend, ...]) -> None:
        """In force soon, unless nothing changed."""
        if backends != self._found:
            self._found = backends
            self._in_force.ask()

    @property
    def is_settled(self) -> bool:
        """All that was configured and found is in force."""
        return self._in_force.is_settled

    async def close(self) -> None:
        """Return when nothing is put in force any more."""
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

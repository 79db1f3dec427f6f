"""The backends of the configuration and those that were found in a cluster, put in force together.

Either set may change at any time; changes are put in force one after the other, and those that come while
one is, as one. The configuration wins: a found backend whose name it uses is left out, and of a contested
group-version snapshot.precedence takes the configured backend.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.tasks import log_failure

logger = logging.getLogger(__name__)


class BackendSets:
    """``put`` puts all backends in force; it is never called while it runs."""

    def __init__(self, put: Callable[[tuple[Backend, ...]], Awaitable[None]]) -> None:
        self._put = put
        self._configured: tuple[Backend, ...] = ()
        self._found: tuple[Backend, ...] = ()
        self._is_due = False
        self._putting: asyncio.Task[None] | None = None
        self.problems: tuple[str, ...] = ()
        """Found backends that were left out, in words."""

    async def configure(self, backends: tuple[Backend, ...]) -> None:
        """Returns when they are in force."""
        self._configured = backends
        await asyncio.shield(self._soon())

    def find(self, backends: tuple[Backend, ...]) -> None:
        """In force soon, unless nothing changed."""
        if backends != self._found:
            self._found = backends
            self._soon()

    @property
    def is_settled(self) -> bool:
        """All that was configured and found is in force."""
        return self._putting is not None and self._putting.done()

    async def close(self) -> None:
        """Return when nothing is put in force any more."""
        self._is_due = False
        if self._putting is not None:
            await asyncio.gather(self._putting, return_exceptions=True)

    def _soon(self) -> asyncio.Task[None]:
        self._is_due = True
        if self._putting is None or self._putting.done():
            self._putting = asyncio.create_task(self._put_all(), name="backends")
            log_failure(self._putting, logger, "backends could not be put in force")
        return self._putting

    async def _put_all(self) -> None:
        while self._is_due:
            self._is_due = False
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

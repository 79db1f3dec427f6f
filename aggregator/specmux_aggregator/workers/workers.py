"""The worker processes of one service, one for each kind of work that must not wait for another."""

from __future__ import annotations

import asyncio

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.workers.worker import Worker


class Workers:
    """Processes start with their first work; two are started ahead."""

    def __init__(self, settings: Settings) -> None:
        build_timeout = settings.limits.build_timeout
        self.builder = Worker(timeout=build_timeout)
        """Builds documents that backends changed."""
        self.encoder = Worker(timeout=build_timeout)
        """Encodes documents for clients: the conversion of a backend's document never delays it."""
        self.catalogue = Worker(timeout=build_timeout)
        """Makes JSON Schemas."""
        self.checker = Worker(timeout=settings.documents.check_timeout)
        """Checks documents against their standard."""

    async def warm_up(self) -> None:
        """Start the processes that a first client would otherwise wait about a second for."""
        await asyncio.gather(self.encoder.start(), self.builder.start())

    async def close(self) -> None:
        every = (self.builder, self.encoder, self.catalogue, self.checker)
        await asyncio.gather(*(worker.close() for worker in every))

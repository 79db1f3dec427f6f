"""The worker processes of one service, each for work that must not wait for the others'."""

from __future__ import annotations

import asyncio

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.jobs.worker import Worker


class Workers:
    """A process starts with its first work; two are started ahead."""

    def __init__(self, settings: Settings) -> None:
        build_timeout = settings.limits.build_timeout
        self.builder = Worker(timeout=build_timeout)
        """What backends changed."""
        self.encoder = Worker(timeout=build_timeout)
        """What clients asked for: the conversion of a backend's document never delays it."""
        self.catalogue = Worker(timeout=build_timeout)
        """JSON Schemas."""
        self.checker = Worker(timeout=settings.documents.check_timeout)
        """Documents against their standard."""

    async def warm_up(self) -> None:
        """Have those up that a first client would wait for: that takes about a second."""
        await asyncio.gather(self.encoder.start(), self.builder.start())

    async def close(self) -> None:
        every = (self.builder, self.encoder, self.catalogue, self.checker)
        await asyncio.gather(*(worker.close() for worker in every))

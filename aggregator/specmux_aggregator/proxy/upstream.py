"""The way to one backend for requests whose answers stream: it ends when the last of them has."""

from __future__ import annotations

import asyncio
from typing import Final

from specmux_aggregator.config.settings import Polling
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.upstream.identities import Identities
from specmux_aggregator.upstream.transport import Transport

AHEAD: Final = 32 * 1024
"""As in upstream/transport.py; this much is held for every client that reads slowly."""


class Upstream:
    """One backend, asked with the credentials that ``backend`` has. Lives on one event loop."""

    def __init__(self, backend: Backend, *, polling: Polling, identities: Identities) -> None:
        self.backend = backend
        # No limit of its own: each connection stands for one of a client, and those are counted
        # (listen.max_connections). A watch must not keep other requests waiting.
        self.transport = Transport(
            backend,
            polling=polling,
            identities=identities,
            connections=0,
            ahead=AHEAD,
            keeps_after_no_body=False,
        )
        self._held = 0
        self._is_free = asyncio.Event()
        self._is_free.set()

    def hold(self) -> None:
        """A request is under way: ``retire`` waits for its ``release``."""
        self._held += 1
        self._is_free.clear()

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            self._is_free.set()

    async def retire(self) -> None:
        """Close once nothing is under way any more."""
        await self._is_free.wait()
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

"""What one backend answers when its root is asked for."""

from __future__ import annotations

from typing import Any

from specmux_aggregator.fetch import BackendClient
from specmux_aggregator.model import Backend
from specmux_aggregator.settings import Limits, Polling

POLLING = Polling(connect_timeout=5.0, idle_timeout=5.0, total_timeout=10.0)


async def root_of(backend: Backend, times: int = 1) -> Any:
    """The last of ``times`` answers to one client."""
    client = BackendClient(backend, polling=POLLING, limits=Limits())
    try:
        for _ in range(times):
            answer = await client.root()
        return answer
    finally:
        await client.close()

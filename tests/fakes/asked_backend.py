"""What one backend answers when its root is asked for."""

from __future__ import annotations

from typing import Any

from deadline import DEADLINE
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.upstream.client import BackendClient

POLLING = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)


async def root_of(backend: Backend, times: int = 1) -> Any:
    """The last of ``times`` answers to one client."""
    client = BackendClient(backend, polling=POLLING, limits=LimitSettings())
    try:
        for _ in range(times):
            answer = await client.root()
        return answer
    finally:
        await client.close()

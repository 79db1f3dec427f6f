"""What tests of requests that are passed on share: memory, gauges, a watch."""

from __future__ import annotations

from pathlib import Path

from fakes.streaming_backend import Seen
from running.proxying_service import CHUNKED
from running.service import Client


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def watch(seen: Seen) -> None:
    """The head, one event, and silence."""
    await seen.write(CHUNKED + b"3\r\none\r\n")
    await seen.wait_until_left()


def gauge(client: Client, name: str) -> float:
    value = client.app.metrics.registry.get_sample_value(name)
    assert value is not None
    return value

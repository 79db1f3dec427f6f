"""How a server of the tests writes to a client that may be gone."""

from __future__ import annotations

import asyncio


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write, and wait until it has left. Raises ConnectionError without a client, where asyncio takes
    what is written to an ended connection."""
    if writer.is_closing():
        raise ConnectionResetError("the client is gone")
    writer.write(data)
    await writer.drain()

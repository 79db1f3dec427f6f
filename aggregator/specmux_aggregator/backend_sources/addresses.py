"""The addresses of a backend's servers: reported by its cluster, or resolved from its name."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from aiohttp.abc import AbstractResolver
from yarl import URL

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.upstream.connections.addresses import Address, DaemonResolver, address_of, is_literal

KEPT: Final = 60.0
"""Seconds for which the addresses of a name are cached."""

TIMEOUT: Final = 3.0
"""Seconds for one lookup."""


class BackendAddresses:
    """Resolves on demand. Lives on one event loop."""

    def __init__(
        self, *, resolver: AbstractResolver | None = None, now: Callable[[], float] = lambda: time.monotonic()
    ) -> None:
        self._resolver = DaemonResolver() if resolver is None else resolver
        self._now = now
        self._good_until = 0.0
        self._found: tuple[Address, ...] = ()

    async def of(self, backend: Backend) -> tuple[Address, ...]:
        """All known addresses; empty if the URL contains an address."""
        if backend.found is not None and backend.found.servers:
            return tuple(address_of(host, port) for host, port in backend.found.servers)
        url = URL(backend.url, encoded=True)
        if url.raw_host is None or url.port is None or is_literal(url.raw_host):
            return ()
        if self._now() >= self._good_until:
            await self._look_up(url.raw_host, url.port)
        return self._found

    async def _look_up(self, host: str, port: int) -> None:
        self._good_until = self._now() + KEPT
        try:
            async with asyncio.timeout(TIMEOUT):
                found = await self._resolver.resolve(host, port, family=socket.AF_UNSPEC)
        except (OSError, UnicodeError):
            return  # reported by the connection attempt
        families: defaultdict[object, list[Address]] = defaultdict(list)
        for each in found:
            address = address_of(each["host"], each["port"])
            families[address[0]].append(address)
        # With both protocols a server has two addresses; use those of one protocol: the one with more, or the
        # one that the system prefers (RFC 6724).
        largest = max(families.values(), key=len) if families else []
        self._found = tuple(largest)

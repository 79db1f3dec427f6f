"""The addresses of a backend, each of a server of its own: those that its cluster tells, or its name's."""

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
from specmux_aggregator.upstream.resolver import DaemonResolver
from specmux_cache.http.connections.addresses import Address, address_of, is_literal

KEPT: Final = 60.0
"""Seconds that the addresses of a name are good for."""

TIMEOUT: Final = 3.0
"""Seconds for one look-up."""


class BackendAddresses:
    """Looked up when asked for. Lives on one event loop."""

    def __init__(
        self, *, resolver: AbstractResolver | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._resolver = DaemonResolver() if resolver is None else resolver
        self._now = now
        self._good_until = 0.0
        self._found: tuple[Address, ...] = ()

    async def of(self, backend: Backend) -> tuple[Address, ...]:
        """All that are known now; none for an address that is written as one."""
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
            return  # it is told where the name is connected to
        families: defaultdict[object, list[Address]] = defaultdict(list)
        for each in found:
            address = address_of(each["host"], each["port"])
            families[address[0]].append(address)
        # Of a host with both protocols the two addresses are one server's: those of one protocol count, the
        # one that has more, or that the system prefers (RFC 6724).
        largest = max(families.values(), key=len) if families else []
        self._found = tuple(largest)

"""Limits on the number of client connections, including TLS handshakes: in total, and per address.

An IPv6 client counts by its /64, the smallest network that a customer or host is given: counted by single
addresses it could hold any number of connections.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.server.stats import RequestStats

MAPPED: Final = bytes(10) + b"\xff\xff"
"""The prefix of an IPv4 address seen through an IPv6 socket (RFC 4291 2.5.5.2)."""

NETWORK: Final = 8
"""Bytes of an IPv6 address that form the network: /64."""


class ClientAddresses:
    """Connections by address, at most ``limit`` each; 0: unlimited."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Number of addresses with a connection."""
        return len(self._held)

    def take(self, address: bytes) -> bool:
        """Count one more connection of ``address``; False if it has reached the limit."""
        held = self._held.get(address, 0)
        if self._limit and held >= self._limit:
            return False
        self._held[address] = held + 1
        return True

    def give_back(self, address: bytes) -> None:
        held = self._held[address]
        if held > 1:
            self._held[address] = held - 1
        else:
            del self._held[address]


def address_of(peer: Any) -> bytes:
    """The key under which a connection counts. ``peer``: as a socket reports it; empty if it has no
    address."""
    if not isinstance(peer, tuple):
        return b""
    host = str(peer[0])
    try:
        if ":" not in host:
            return socket.inet_pton(socket.AF_INET, host)
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return b""
    return packed[len(MAPPED) :] if packed.startswith(MAPPED) else packed[:NETWORK]


class Admission:
    """Counts the connections of one listener."""

    def __init__(self, listen: ListenSettings, stats: RequestStats, *, make_room: Callable[[], bool]) -> None:
        """``make_room`` closes an idle connection and releases its place; False if there is none."""
        self._max = listen.max_connections
        self._stats = stats
        self._make_room = make_room
        self._holders: dict[object, bytes] = {}
        """The address under which each holder is counted."""
        self._addresses = ClientAddresses(listen.max_connections_per_address)

    def admit(self, holder: object, peer: Any) -> bool:
        """Count a new connection; False if a limit is reached. ``peer``: the address as a socket reports
        it."""
        if len(self._holders) >= self._max and not self._make_room():
            self._stats.connections_refused += 1
            return False
        address = address_of(peer)
        if not self._addresses.take(address):
            self._stats.connections_refused_by_address += 1
            return False
        self._holders[holder] = address
        self._stats.connections = len(self._holders)
        return True

    def pass_on(self, holder: object, to: object) -> None:
        """Transfer the place of ``holder`` to another."""
        self._holders[to] = self._holders.pop(holder)

    def release(self, holder: object) -> None:
        """Free the place of ``holder``; does nothing for one that has none."""
        address = self._holders.pop(holder, None)
        if address is not None:
            self._addresses.give_back(address)
        self._stats.connections = len(self._holders)

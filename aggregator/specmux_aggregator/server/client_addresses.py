"""Connections per client address. An IPv6 client counts by its /64, the smallest network that a customer or
host is given: counted by single addresses it could hold any number of connections."""

from __future__ import annotations

import socket
from typing import Any, Final

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

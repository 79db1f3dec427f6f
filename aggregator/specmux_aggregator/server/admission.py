"""Limits on the number of client connections, including TLS handshakes: in total, and per address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.server.client_addresses import ClientAddresses, address_of
from specmux_aggregator.server.stats import RequestStats


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

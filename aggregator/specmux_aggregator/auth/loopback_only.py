"""A guard that answers only requests addressed to this machine: with DNS rebinding, a foreign name points
here, and the answers would expose what the user's own credentials may read."""

from __future__ import annotations

from typing import Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.authenticator import ALWAYS
from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal
from specmux_aggregator.server.protocols import ClientConnection, Guard, Permission

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class LoopbackHosts:
    """Implements the server's ``Guard`` protocol, optionally in front of another guard."""

    def __init__(self, inner: Guard | None) -> None:
        self._inner = inner

    @property
    def takes_secrets(self) -> bool:
        return self._inner is not None and self._inner.takes_secrets

    def permits(self, message: RawRequestMessage, connection: ClientConnection) -> Permission | None:
        if not is_loopback(message):
            return None
        return ALWAYS if self._inner is None else self._inner.permits(message, connection)

    async def refusal(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        if not is_loopback(message):
            return refusal(
                403,
                "Forbidden",
                "this page answers under 127.0.0.1 and localhost alone",
                is_head=message.method == "HEAD",
            )
        return None if self._inner is None else await self._inner.refusal(message, connection)


def is_loopback(message: RawRequestMessage) -> bool:
    """Whether the Host of the request is this machine, whatever its port."""
    hosts = message.headers.getall("Host", ())
    if len(hosts) != 1:
        return False
    name, colon, port = hosts[0].rpartition(":")
    host = name if colon and port.isdecimal() else hosts[0]
    return host.lower() in LOOPBACK

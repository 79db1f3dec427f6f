"""Mode mtls: a certificate of the client CA admits, optionally only certain names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from specmux_aggregator.auth.authenticator import AuthRefusal, AuthRequest, RefusalReason
from specmux_aggregator.auth.peer import peer_certificate
from specmux_aggregator.server.protocols import ClientConnection, Permission

_MISSING: Final = AuthRefusal(RefusalReason.NO_CREDENTIALS, "a client certificate is wanted")
_OTHER: Final = AuthRefusal(RefusalReason.FORBIDDEN, "no client of this certificate's name is allowed")


class ClientCertificates:
    """``names``: common or alternative names of which a certificate must have one; None: any.

    Also the permission itself: it depends only on the connection, and no connection outlives a change of the
    CA.
    """

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else frozenset(names)

    def permits(self, asked: AuthRequest) -> Permission | None:
        return self if self._refuse_connection(asked.connection) is None else None

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return self._refuse_connection(connection) is None

    async def refuse(self, asked: AuthRequest) -> AuthRefusal | None:
        return self._refuse_connection(asked.connection)

    def complaint(self) -> str | None:
        return None

    async def run(self) -> None:
        # The listener reloads the CA.
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing to release."""

    def _refuse_connection(self, connection: ClientConnection) -> AuthRefusal | None:
        certificate = peer_certificate(connection)
        if certificate is None:
            return _MISSING
        if self._names is None:
            return None
        return _OTHER if self._names.isdisjoint(certificate.names) else None

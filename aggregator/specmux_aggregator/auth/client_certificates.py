"""Certificates that clients presented in the handshake; and mode mtls, in which one of the client CA admits,
optionally only certain names.

A listener has at most one CA (certificates.py), so a certificate here was issued by that CA for clients:
OpenSSL checks the chain, the validity period and the extended key usage.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from specmux_aggregator.auth.authenticator import AuthRefusal, AuthRequest, RefusalReason
from specmux_aggregator.server.protocols import ClientConnection, Permission

_MISSING: Final = AuthRefusal(RefusalReason.NO_CREDENTIALS, "a client certificate is wanted")
_OTHER: Final = AuthRefusal(RefusalReason.FORBIDDEN, "no client of this certificate's name is allowed")


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    common_name: str
    """The last common name of the subject, as in Go; "" if there is none."""
    names: frozenset[str]
    """The common name and the alternative names."""
    ends: float
    """Seconds since the epoch."""


def peer_certificate(connection: ClientConnection) -> PeerCertificate | None:
    """None for a client without a certificate, or with one that has expired since."""
    transport = connection.transport
    if transport is None:
        return None
    known = connection.certificate
    if known is None:
        known = connection.certificate = _read_certificate(transport)
    if not isinstance(known, PeerCertificate) or known.ends < time.time():
        return None
    return known


def _read_certificate(transport: asyncio.Transport) -> PeerCertificate | bool:
    """False if no certificate was verified; the result never changes for a connection."""
    shown: dict[str, Any] | None = transport.get_extra_info("peercert")
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    # A resumed session was verified in another handshake, possibly against a previous CA.
    if not shown or tls is None or tls.session_reused:
        return False
    common_names = [value for rdn in shown["subject"] for name, value in rdn if name == "commonName"]
    common_name = common_names[-1] if common_names else ""
    return PeerCertificate(
        common_name,
        frozenset((common_name, *(value for _, value in shown.get("subjectAltName", ())))),
        ssl.cert_time_to_seconds(shown["notAfter"]),
    )


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

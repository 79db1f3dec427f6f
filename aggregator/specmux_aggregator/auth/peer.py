"""The certificate that a client proved itself with during the handshake.

certificates.py gives a listener one CA at most, so whoever shows a certificate here got it from that CA, and
for clients: OpenSSL checks the chain, the times and the extended key usage.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Any

from specmux_aggregator.server.protocols import ClientConnection


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    common_name: str
    """The last one of the subject, which is the one that Go takes; "" where there is none."""
    names: frozenset[str]
    """This one and the alternative ones."""
    ends: float
    """Seconds since the epoch."""


def peer_certificate(connection: ClientConnection) -> PeerCertificate | None:
    """None for a client that showed none, and for one whose certificate has expired since."""
    transport = connection.transport
    if transport is None:
        return None
    known = connection.certificate
    if known is None:
        known = connection.certificate = _shown(transport)
    if not isinstance(known, PeerCertificate) or known.ends < time.time():
        return None
    return known


def _shown(transport: asyncio.Transport) -> PeerCertificate | bool:
    """False where none was shown that can be believed: of a connection that does not change."""
    shown: dict[str, Any] | None = transport.get_extra_info("peercert")
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    # A resumed session was verified by another handshake, against a CA that may have been exchanged since.
    if not shown or tls is None or tls.session_reused:
        return False
    common_names = [value for rdn in shown["subject"] for name, value in rdn if name == "commonName"]
    common_name = common_names[-1] if common_names else ""
    return PeerCertificate(
        common_name,
        frozenset((common_name, *(value for _, value in shown.get("subjectAltName", ())))),
        ssl.cert_time_to_seconds(shown["notAfter"]),
    )

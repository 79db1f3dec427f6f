"""The certificate that a client presented in the handshake.

A listener has at most one CA (certificates.py), so a certificate here was issued by that CA for clients:
OpenSSL checks the chain, the validity period and the extended key usage.
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

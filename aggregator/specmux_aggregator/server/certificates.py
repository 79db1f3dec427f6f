"""The certificate of the TLS listener and the CA of client certificates; read again when their files change.

Reloading a context in use breaks running handshakes, so each reload makes a new context for the connections
that follow. Files that do not load, such as half-written ones, leave the previous certificate in place.

With a client CA, a client may present a certificate; one that the CA did not sign ends the handshake. None is
required here, since health probes have none. In this mode no session tickets are issued: a resumed session
skips verification and would outlive a change of the CA.
"""

from __future__ import annotations

import logging
import ssl
from collections import deque
from pathlib import Path
from typing import Final

from specmux_aggregator.errors import InvalidConfig

logger = logging.getLogger(__name__)

TRUSTED_MAX: Final = 16
"""Contexts that may be current during one handshake."""

Stamp = tuple[tuple[int, int, int], ...]
"""Inode, size and modification time (ns) of each file: a ConfigMap or Secret is updated by swapping a
symlink, so any of them may change."""


class Certificates:
    """A certificate chain and its key, current as of the last ``refresh``."""

    def __init__(self, cert_file: Path, key_file: Path | None, *, client_ca_file: Path | None = None) -> None:
        """Raises InvalidConfig when the files cannot be used."""
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_ca_file = client_ca_file
        files = (cert_file, key_file, client_ca_file)
        self._files = tuple(path for path in files if path is not None)
        try:
            self._stamp = self._stamps()
            self._ca = self._read_ca()
            self.context = self._load()
            """The context for new connections."""
        except (OSError, ssl.SSLError) as error:
            used = "the certificate" if client_ca_file is None else "the certificate or the clients' CA"
            raise InvalidConfig(
                f"cannot use {used} of {', '.join(map(str, self._files))}: {_reason(error)}",
                where="listen.tls_cert_file",
            ) from error
        self._complaint: str | None = None
        """The last reason for not reloading, logged once."""
        self._trusted = deque([self.context], maxlen=TRUSTED_MAX)
        """The contexts that verify against the current CA."""

    def refresh(self) -> bool | None:
        """Check the files, and load them if they changed. Blocks for a few file reads.

        True: new files are in use; False: they changed but cannot be used; None: nothing changed.
        """
        try:
            stamp = self._stamps()
            if stamp == self._stamp:
                return None
            ca, current = self._read_ca(), self._load()
        except (OSError, ssl.SSLError) as error:
            if (complaint := _reason(error)) != self._complaint:
                self._complaint = complaint
                logger.warning("the certificate was not reloaded: %s", complaint)
            return False
        # Remember a stamp only if it was taken before a load that succeeded: files that change in between are
        # read again.
        self._stamp, self.context, self._complaint = stamp, current, None
        if ca != self._ca:
            self._ca = ca
            self._trusted.clear()
        self._trusted.append(current)
        logger.info("the certificate was reloaded")
        return True

    def is_current(self, tls: ssl.SSLObject) -> bool:
        """Whether the client was verified against the current CA: a handshake can outlast a change of the
        CA."""
        return self._client_ca_file is None or tls.context in self._trusted

    def _read_ca(self) -> bytes:
        return b"" if self._client_ca_file is None else self._client_ca_file.read_bytes()

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # Renegotiation within TLS 1.2 lets a client make the server work (CVE-2011-1473).
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.load_cert_chain(self._cert_file, self._key_file)
        # OpenSSL issues two tickets, each a fifteenth of a handshake. Go's server issues one, which is
        # reusable.
        context.num_tickets = 1
        if self._client_ca_file is not None:
            context.load_verify_locations(self._client_ca_file)
            # As in kube-apiserver, an intermediate CA may be trusted without its root.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_mode = ssl.CERT_OPTIONAL
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def _stamps(self) -> Stamp:
        stats = (path.stat() for path in self._files)
        return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _reason(error: OSError) -> str:
    """A description with the file: OpenSSL's own message names neither the file nor the cause."""
    match getattr(error, "reason", None):
        case "KEY_VALUES_MISMATCH":
            return "the private key belongs to another certificate"
        case _ if "PEM lib" in str(error):
            return "no PEM certificate or private key in it"
        case _:
            return f"{error.filename}: {error.strerror}" if error.filename else str(error)

"""What one backend is shown of us, and how we check it: the files behind both, read again when they change.

A file that is unusable while it is being replaced costs no connection: what was read before stays in use.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from specmux_aggregator.model import Backend, BackendTLS, Cause, Failure

FILE_MAX: Final = 1024 * 1024
"""Bytes of a certificate, key or token file; a longer one is not what it should be."""

logger = logging.getLogger(__name__)


class Unusable(Exception):
    """A file cannot be used, and nothing read earlier can stand in. Ends in fetch.py as its ``failure``."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Shown:
    """What goes into one request."""

    fields: Mapping[str, str]
    context: ssl.SSLContext | None
    """None for a backend without TLS."""


class Identity:
    """Ours towards one backend. Says once, at the start, where the configuration gives security away."""

    def __init__(self, backend: Backend) -> None:
        url = urlsplit(backend.url)
        user, token_file = backend.credentials.remote_user, backend.credentials.token_file
        self._fields = {} if user is None else {"X-Remote-User": user}
        self._token = None if token_file is None else TokenFile(token_file)
        self._trust = TrustStore(backend.tls) if url.scheme == "https" else None
        if backend.tls.insecure_skip_verify:
            logger.warning("backend %s: its certificate is not verified (insecure_skip_verify)", backend.name)
        if self._token is not None and self._trust is None and not _is_loopback(url.hostname):
            logger.warning("backend %s: its token is sent without TLS", backend.name)

    @property
    def needs_files(self) -> bool:
        """Then ``shown`` blocks, and belongs off the event loop."""
        return self._token is not None or self._trust is not None

    def shown(self) -> Shown:
        """What the files say now. Raises Unusable."""
        fields = self._fields
        if self._token is not None:
            fields = {**fields, "Authorization": f"Bearer {self._token.read()}"}
        return Shown(fields, None if self._trust is None else self._trust.context())


class TokenFile:
    """A bearer token on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None
        self._complaint: str | None = None

    def read(self) -> str:
        """The token as it is now, else the last good one. Raises Unusable when there is neither."""
        try:
            self._token, self._complaint = _token(_read(self._path), self._path), None
        except Unusable as unusable:
            if self._token is None:
                raise
            self._complaint = _complain(unusable, self._complaint)
        return self._token


class TrustStore:
    """The TLS context made of one backend's files."""

    def __init__(self, tls: BackendTLS) -> None:
        self._tls = tls
        # One attribute: threads that come at once may each build a context, but never mix two.
        self._held: tuple[bytes, ssl.SSLContext] | None = None
        self._complaint: str | None = None

    def context(self) -> ssl.SSLContext:
        """A context of the files as they are now, else of the last good ones. Raises Unusable for neither."""
        held = self._held
        try:
            digest = _digest(self._tls)
            if held is None or held[0] != digest:
                held = self._held = digest, _context(self._tls)
            self._complaint = None
        except Unusable as unusable:
            if held is None:
                raise
            self._complaint = _complain(unusable, self._complaint)
        return held[1]


def _complain(unusable: Unusable, before: str | None) -> str:
    """Log a complaint that was not the last one already."""
    complaint = str(unusable)
    if complaint != before:
        logger.warning("%s; what was read before stays in use", complaint)
    return complaint


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror or "cannot be read") from error
    if len(data) > FILE_MAX:
        raise _unreadable(path, f"larger than {FILE_MAX} bytes")
    return data


def _token(data: bytes, path: Path) -> str:
    token = data.strip()
    # RFC 6750 2.1 is narrower; what must not pass is whatever would break the header field.
    if not token or not all(0x20 < byte < 0x7F for byte in token):
        raise _unreadable(path, "holds no bearer token")
    return token.decode("ascii")


def _digest(tls: BackendTLS) -> bytes:
    # By content: a mounted Secret is swapped by symbolic link, and times may stay the same.
    digest = hashlib.sha256()
    for path in (tls.ca_file, tls.cert_file, tls.key_file):
        digest.update(hashlib.sha256(_read(path) if path is not None else b"").digest())
    return digest.digest()


def _context(tls: BackendTLS) -> ssl.SSLContext:
    # Not ssl.create_default_context: it writes session keys where SSLKEYLOGFILE says, and from Python 3.13 on
    # refuses the CAs of many clusters (VERIFY_X509_STRICT).
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca_file is None:
        context.load_default_certs()
    else:
        _load_ca(context, tls.ca_file)
    if tls.cert_file is not None:
        _load_pair(context, tls.cert_file, tls.key_file)
    return context


def _load_ca(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except (ssl.SSLError, OSError) as error:
        raise _not_pem(path, "no CA certificates in PEM form") from error


def _load_pair(context: ssl.SSLContext, cert_file: Path, key_file: Path | None) -> None:
    try:
        # The empty password keeps OpenSSL from asking the terminal for one.
        context.load_cert_chain(cert_file, key_file, password="")
    except (ssl.SSLError, OSError) as error:
        raise _not_pem(cert_file, "no certificate with its private key in PEM form") from error


def _unreadable(path: Path, reason: str) -> Unusable:
    return Unusable(Failure(Cause.UNREADABLE, f"{path}: {reason}"))


def _not_pem(path: Path, reason: str) -> Unusable:
    return Unusable(Failure(Cause.BAD_TLS, f"{path}: {reason}"))

"""Credentials for one server and the means to verify it, from files that are read again when they change.

A file that is unusable while it is being replaced costs no connection: what was read before stays in use.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from specmux_cache.access.server_access import (
    Credentials,
    ExecPlugin,
    ServerAccess,
    ServerTLS,
    is_bearer_value,
)
from specmux_cache.errors import UnusableCredentials
from specmux_cache.whole_files import UnreadableFile, read_small

HeaderFields: TypeAlias = tuple[tuple[str, str], ...]
"""A name may repeat."""


class TokenFile:
    """A bearer token on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None
        self._complaint: str | None = None

    def read(self) -> str:
        """The token as it is now, else the last good one. Raises UnusableCredentials for neither."""
        try:
            self._token, self._complaint = _parse_token(_read_file(self._path), self._path), None
        except UnusableCredentials as unusable:
            if self._token is None:
                raise
            self._complaint = _complain(unusable, self._complaint)
        return self._token


class TrustStore:
    """The TLS context made of one server's files and data."""

    def __init__(self, tls: ServerTLS) -> None:
        self._tls = tls
        # One attribute: threads that come at once may each build a context, but never mix two.
        self._held: tuple[bytes, ssl.SSLContext] | None = None
        self._complaint: str | None = None

    def context(self, pair: tuple[bytes, bytes] | None = None) -> ssl.SSLContext:
        """A context of the files as they are now, else of the last good ones.

        Raises UnusableCredentials for neither.

        ``pair``: certificate and key to present instead of the configured ones.
        """
        held, tls = self._held, self._tls
        if pair is not None:
            tls = replace(tls, cert_file=None, cert_data=pair[0], key_file=None, key_data=pair[1])
        try:
            digest = _digest(tls)
            if held is None or held[0] != digest:
                held = self._held = digest, _context(tls)
            self._complaint = None
        except UnusableCredentials as unusable:
            if held is None:
                raise
            self._complaint = _complain(unusable, self._complaint)
        return held[1]


class FileIdentity:
    """Ours towards one server; ``read`` may be called in any thread."""

    def __init__(self, access: ServerAccess) -> None:
        token_file = access.credentials.token_file
        self._fields = tuple(_fixed_fields(access.credentials))
        self._token = None if token_file is None else TokenFile(token_file)
        self._trust = TrustStore(access.tls) if urlsplit(access.url).scheme == "https" else None

    @property
    def has_tls(self) -> bool:
        return self._trust is not None

    @property
    def has_files(self) -> bool:
        """Whether reading it may wait for a disk."""
        return self._token is not None or self._trust is not None

    def read(
        self, token: str | None = None, pair: tuple[bytes, bytes] | None = None
    ) -> tuple[HeaderFields, ssl.SSLContext | None]:
        """Header fields, and the context of a server with TLS. Raises UnusableCredentials.

        ``token``, and certificate and key, are those that a program gave.
        """
        if self._token is not None:
            token = self._token.read()
        fields = self._fields if token is None else (*self._fields, ("Authorization", f"Bearer {token}"))
        return fields, None if self._trust is None else self._trust.context(pair)


def plugin_of(credentials: Credentials) -> ExecPlugin | None:
    """The program that is asked for credentials: nobody is asked for what is there."""
    has_own = credentials.token_file or credentials.token is not None or credentials.basic is not None
    return None if has_own else credentials.exec_plugin


def _fixed_fields(credentials: Credentials) -> Iterator[tuple[str, str]]:
    """The header fields that no file and no program changes."""
    if credentials.remote_user is not None:
        yield "X-Remote-User", credentials.remote_user
    if credentials.token_file is None and credentials.token is not None:
        yield "Authorization", f"Bearer {credentials.token}"
    elif credentials.token_file is None and credentials.basic is not None:
        pair = ":".join(credentials.basic)
        yield "Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"
    yield from credentials.impersonation


def _complain(unusable: UnusableCredentials, before: str | None) -> str:
    """Log a complaint that was not the last one already."""
    complaint = str(unusable)
    if complaint != before:
        from specmux_cache.log import logger  # a command that reads them once has nothing to log

        logger.warning("%s; what was read before stays in use", complaint)
    return complaint


def _read_file(path: Path) -> bytes:
    try:
        return read_small(path)
    except UnreadableFile as error:
        raise _unreadable(path, str(error)) from error


def _parse_token(data: bytes, path: Path) -> str:
    token = data.decode("latin-1").strip()
    if "," in token and "\n" not in token:
        raise _unreadable(
            path,
            "holds token,name as the service's auth.token_file does; a client's file holds the token alone",
        )
    if not is_bearer_value(token):
        raise _unreadable(path, "holds no bearer token")
    return token


def _digest(tls: ServerTLS) -> bytes:
    # By content: a mounted Secret is swapped by symbolic link, and times may stay the same.
    digest = hashlib.sha256()
    for data, path in (
        (tls.ca_data, tls.ca_file),
        (tls.cert_data, tls.cert_file),
        (tls.key_data, tls.key_file),
    ):
        content = data if data is not None else _read_file(path) if path is not None else b""
        digest.update(hashlib.sha256(content).digest())
    return digest.digest()


def _context(tls: ServerTLS) -> ssl.SSLContext:
    # Not ssl.create_default_context: it writes session keys where SSLKEYLOGFILE says, and from Python 3.13 on
    # refuses the CAs of many clusters (VERIFY_X509_STRICT).
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go does: an intermediate, or the certificate itself, may be trusted without the CA above it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca_data is not None:
        _load_ca(context, "the CA certificates given inline", data=tls.ca_data)
    elif tls.ca_file is not None:
        _load_ca(context, str(tls.ca_file), path=tls.ca_file)
    else:
        context.load_default_certs()
    if tls.cert_data is not None or tls.key_data is not None:
        _load_pair_data(context, tls)
    elif tls.cert_file is not None:
        _load_pair(context, tls.cert_file, tls.key_file, str(tls.cert_file))
    return context


def _load_ca(
    context: ssl.SSLContext, where: str, *, path: Path | None = None, data: bytes | None = None
) -> None:
    try:
        context.load_verify_locations(cafile=path, cadata=None if data is None else data.decode("ascii"))
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _not_pem(where, "no CA certificates in PEM form") from error


def _load_pair(
    context: ssl.SSLContext, cert_file: Path | str, key_file: Path | str | None, where: str
) -> None:
    try:
        # The empty password keeps OpenSSL from asking the terminal for one.
        context.load_cert_chain(cert_file, key_file, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise _not_pem(
                str(key_file or where), f"not the private key of the certificate {where}"
            ) from error
        raise _not_pem(where, "no certificate with its private key in PEM form") from error
    except OSError as error:
        raise _not_pem(where, "no certificate with its private key in PEM form") from error


def _load_pair_data(context: ssl.SSLContext, tls: ServerTLS) -> None:
    """Present a pair of which at least one half is no file. OpenSSL reads files only."""
    halves = (
        data if data is not None else _read_file(path) if path is not None else b""
        for data, path in ((tls.cert_data, tls.cert_file), (tls.key_data, tls.key_file))
    )
    with _passing_file(b"\n".join(halves)) as name:
        _load_pair(context, name, None, "the client certificate given inline")


@contextlib.contextmanager
def _passing_file(content: bytes) -> Iterator[str]:
    """A path under which the content can be read for a moment; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        import tempfile

        with tempfile.NamedTemporaryFile() as file:  # mode 0600
            file.write(content)
            file.flush()
            yield file.name


def _unreadable(path: Path, reason: str) -> UnusableCredentials:
    return UnusableCredentials(f"{path}: {reason}", cause="unreadable")


def _not_pem(where: str, reason: str) -> UnusableCredentials:
    return UnusableCredentials(f"{where}: {reason}", cause="bad_tls")

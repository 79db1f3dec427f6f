"""Who we are towards one backend, as the configuration and its files say it; blocks, and runs nothing.

The files are looked at each time.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from typing import TypeAlias
from urllib.parse import urlsplit

from specmux_aggregator.model.backend import Backend, Credentials, ExecPlugin
from specmux_aggregator.upstream.credentials import TokenFile, TrustStore

HeaderFields: TypeAlias = tuple[tuple[str, str], ...]
"""A name may repeat."""


class FileIdentity:
    """Ours towards one backend; ``read`` may be called in any thread."""

    def __init__(self, backend: Backend) -> None:
        token_file = backend.credentials.token_file
        self._fields = tuple(_fixed_fields(backend.credentials))
        self._token = None if token_file is None else TokenFile(token_file)
        self._trust = TrustStore(backend.tls) if urlsplit(backend.url).scheme == "https" else None

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
        """Header fields, and the context of a backend with TLS. Raises Unusable.

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

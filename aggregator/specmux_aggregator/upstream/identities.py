"""Who we are towards each backend: one identity, however many connections are made with it.

An identity is made of one backend alone. Its files are looked at for each request, its program is run when
what it gave runs out.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_cache.access.credentials import FileIdentity, HeaderFields, plugin_of
from specmux_cache.access.exec_plugin import ExecCredentials, IssuedCredential
from specmux_cache.access.field_values import is_loopback
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.errors import UnusableCredentials

_Key: TypeAlias = tuple[BackendName, str, ServerTLS, Credentials, str | None]

logger = logging.getLogger(__name__)


class Unusable(Exception):
    """There are no credentials to show. Ends in client.py as its ``failure``."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class Identities:
    """Those in use, each shared by all who take it for the same backend: a program runs once for them
    together. Lives on one event loop."""

    def __init__(self) -> None:
        self._identities: dict[_Key, Identity] = {}
        self._takers: Counter[_Key] = Counter()

    def take(self, backend: Backend) -> Identity:
        """Ours towards this backend, until ``give_back``. Says where the configuration gives security away,
        once while that is so."""
        key = _key(backend)
        identity = self._identities.get(key)
        if identity is None:
            told = {line for other in self._identities.values() for line in other.exposures}
            self._identities[key] = identity = Identity(backend)
            for line in identity.exposures:
                if line not in told:
                    logger.warning("%s", line)
        self._takers[key] += 1
        return identity

    async def give_back(self, backend: Backend) -> None:
        """What was taken once for this backend; the last one who does so ends what runs for it."""
        key = _key(backend)
        self._takers[key] -= 1
        if not self._takers[key]:
            del self._takers[key]
            await self._identities.pop(key).close()


def _key(backend: Backend) -> _Key:
    """All that an identity is made of."""
    return (backend.name, backend.url, backend.tls, backend.credentials, backend.proxy_url)


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """What goes into one request."""

    fields: HeaderFields = field(repr=False)
    context: ssl.SSLContext | None
    """None for a backend without TLS."""
    issued: IssuedCredential | None = None
    """What an exec plugin gave, where one was asked."""


class Identity:
    """Ours towards one backend, on one event loop."""

    def __init__(self, backend: Backend) -> None:
        credentials = backend.credentials
        plugin = plugin_of(credentials)
        self._files = FileIdentity(backend.access)
        self._plugin = None if plugin is None else ExecCredentials(plugin, backend.access)
        self._has_files = self._files.has_files
        self._fixed = RequestIdentity(*self._files.read()) if plugin is None and not self._has_files else None
        """What no file and no program changes."""
        has_token = (credentials.token_file, credentials.token, credentials.basic) != (None, None, None)
        has_secret = has_token or plugin is not None
        exposures = []
        if backend.tls.insecure_skip_verify:
            exposures.append(
                f"backend {backend.name}: its certificate is not verified (insecure_skip_verify)"
            )
        if has_secret and not self._files.has_tls and not is_loopback(urlsplit(backend.url).hostname):
            exposures.append(f"backend {backend.name}: its token is sent without TLS")
        self.exposures = tuple(exposures)
        """Where the configuration gives security away, in words."""

    async def shown(self) -> RequestIdentity:
        """What files and programs say now. Raises Unusable."""
        if self._fixed is not None:
            return self._fixed
        try:
            issued = None if self._plugin is None else await self._plugin.current()
            if not self._has_files:
                return self._read(issued)
            return await asyncio.to_thread(self._read, issued)
        except UnusableCredentials as error:
            raise Unusable(Failure(Cause(error.cause), str(error))) from error

    def refused(self, shown: RequestIdentity) -> bool:
        """Told that the backend answered 401. Whether there may be something better to show at once."""
        if self._plugin is None or shown.issued is None:
            return False  # files are read for each request anyway
        return self._plugin.refused(shown.issued)

    async def close(self) -> None:
        """End what runs for it."""
        if self._plugin is not None:
            await self._plugin.close()

    def _read(self, issued: IssuedCredential | None) -> RequestIdentity:
        if issued is None:
            return RequestIdentity(*self._files.read())
        return RequestIdentity(*self._files.read(issued.token, issued.pair), issued)

"""The service's identity towards each backend: one identity, shared by all connections.

An identity depends on one backend alone. Its files are checked for each request, its program runs when the
last credential expires. After a refusal, new files end the wait.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_cache.access.credentials import FileIdentity, HeaderFields, plugin_of
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.access.urls import is_loopback
from specmux_cache.errors import UnusableCredentials

if TYPE_CHECKING:  # imported where a program is configured
    from specmux_cache.access.exec_plugin import ExecCredentials, IssuedCredential

_Key: TypeAlias = tuple[BackendName, str, ServerTLS, Credentials, str | None]

logger = logging.getLogger(__name__)

LOOK: Final = 1.0
"""Seconds between checks of credential files, each a stat per file."""


class Unusable(Exception):
    """There are no usable credentials. client.py turns it into its ``failure``."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class Identities:
    """The identities in use, shared by all users of a backend, so that its program runs once. Lives on one
    event loop."""

    def __init__(self) -> None:
        self._identities: dict[_Key, Identity] = {}
        self._takers: Counter[_Key] = Counter()

    def take(self, backend: Backend) -> Identity:
        """The identity towards this backend, until ``give_back``. Logs once if the configuration weakens
        security."""
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
        """Release one use; the last one ends what runs for the identity."""
        key = _key(backend)
        self._takers[key] -= 1
        if not self._takers[key]:
            del self._takers[key]
            await self._identities.pop(key).close()


def _key(backend: Backend) -> _Key:
    """Everything that an identity depends on."""
    return (backend.name, backend.url, backend.tls, backend.credentials, backend.proxy_url)


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The credentials for one request."""

    fields: HeaderFields = field(repr=False)
    context: ssl.SSLContext | None
    """None for a backend without TLS."""
    issued: IssuedCredential | None = None
    """The result of an exec plugin, if there is one."""


class Identity:
    """The identity towards one backend, on one event loop."""

    def __init__(self, backend: Backend) -> None:
        credentials = backend.credentials
        plugin = plugin_of(credentials)
        self._files = FileIdentity(backend.access)
        self._plugin: ExecCredentials | None = None
        if plugin is not None:
            from specmux_cache.access.exec_plugin import ExecCredentials

            self._plugin = ExecCredentials(plugin, backend.access)
        self._has_files = self._files.has_files
        self._fixed = RequestIdentity(*self._files.read()) if plugin is None and not self._has_files else None
        """The parts that depend on no file or program."""
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
        """Messages about settings that weaken security."""

    async def current(self) -> RequestIdentity:
        """The current content of files and programs. Raises Unusable."""
        if self._fixed is not None:
            return self._fixed
        try:
            issued = None if self._plugin is None else await self._plugin.current()
            if not self._has_files:
                return self._read(issued)
            return await asyncio.to_thread(self._read, issued)
        except UnusableCredentials as error:
            raise Unusable(Failure(Cause(error.cause), str(error))) from error

    def note_refusal(self, shown: RequestIdentity) -> bool:
        """Report a 401; returns whether newer credentials may be available at once."""
        if self._plugin is None or shown.issued is None:
            return False  # files are read for each request anyway
        return self._plugin.note_refusal(shown.issued)

    async def close(self) -> None:
        """End what runs for it."""
        if self._plugin is not None:
            await self._plugin.close()

    def _read(self, issued: IssuedCredential | None) -> RequestIdentity:
        if issued is None:
            return RequestIdentity(*self._files.read())
        return RequestIdentity(*self._files.read(issued.token, issued.pair), issued)


def credential_files(backend: Backend) -> tuple[Path, ...]:
    """The files with our credentials, not those that verify the backend."""
    found = (backend.credentials.token_file, backend.tls.cert_file, backend.tls.key_file)
    return tuple(path for path in found if path is not None)


async def until_changed(files: Iterable[Path]) -> None:
    """Return when one of the files is written or replaced."""
    paths = tuple(files)
    before = await asyncio.to_thread(_fingerprints, paths)
    while await asyncio.to_thread(_fingerprints, paths) == before:
        await asyncio.sleep(LOOK)


def _fingerprints(paths: Iterable[Path]) -> list[tuple[int, int, int] | None]:
    return [_fingerprint(path) for path in paths]


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)

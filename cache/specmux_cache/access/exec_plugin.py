"""Run an exec plugin (client.authentication.k8s.io) for credentials, validate them, and cache them until they
expire.

The program runs once for any number of waiting requests. Neither its input nor its output reaches a log or an
error.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

import orjson

from specmux_cache.access.server_access import ExecPlugin, ServerAccess, is_bearer_value
from specmux_cache.errors import UnusableCredentials
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass

TIMEOUT: Final = 60.0  # seconds for one run

OUTPUT_MAX: Final = 1024 * 1024

GAP: Final = 5.0
"""Seconds between two runs, for whatever reason, after refused or missing credentials."""

DRAINING: Final = 1.0
"""Seconds to wait for a program's last output, and for its end after it is killed."""

MARGIN: Final = 30.0
"""Seconds before expiry at which credentials are renewed; a tenth of their lifetime if that is less."""


@dataclass(frozen=True, slots=True, eq=False)
class IssuedCredential:
    """The result of a run: a token, a certificate with its key, or both."""

    token: str | None = field(repr=False)
    pair: tuple[bytes, bytes] | None = field(repr=False)
    issued_at: float
    """Monotonic seconds, as are the next two."""
    renew_at: float | None = None
    expires_at: float | None = None
    """None: valid until refused."""


class ExecCredentials:
    """Credentials from the program of one server. Lives on one event loop."""

    def __init__(
        self, plugin: ExecPlugin, access: ServerAccess, *, timeout: float = TIMEOUT, gap: float = GAP
    ) -> None:
        self._plugin = plugin
        self._access = access
        self._timeout = timeout
        self._gap = gap
        self._held: IssuedCredential | None = None
        self._failed: tuple[float, UnusableCredentials] | None = None
        self._flight: SingleFlight[None, IssuedCredential] = SingleFlight()

    async def current(self) -> IssuedCredential:
        """Valid credentials. Raises UnusableCredentials."""
        held, now = self._held, time.monotonic()
        if held is not None and (held.renew_at is None or now < held.renew_at):
            return held
        if self._failed is not None and now < self._failed[0] + self._gap:
            return self._stand_in(self._failed[1])
        return await self._flight.run(None, self._run_again)

    def note_refusal(self, issued: IssuedCredential) -> bool:
        """Report a 401 for these credentials; returns whether to retry with others at once."""
        if self._held is not issued:
            return True  # renewed meanwhile
        if time.monotonic() < issued.issued_at + self._gap:
            return False
        self._held = None
        return True

    async def close(self) -> None:
        """End a running program."""
        await self._flight.close()

    async def _run_again(self) -> IssuedCredential:
        try:
            self._held, self._failed = await self._run(), None
        except UnusableCredentials as error:
            self._failed = time.monotonic(), error
            return self._stand_in(error)
        return self._held

    def _stand_in(self, error: UnusableCredentials) -> IssuedCredential:
        """The credentials due for renewal, while they are still valid."""
        held = self._held
        if held is None or held.expires_at is None or held.expires_at <= time.monotonic():
            raise error
        return held

    async def _run(self) -> IssuedCredential:
        plugin = self._plugin
        info = await asyncio.to_thread(_info, plugin, self._access)
        # The program gets the environment of this process, as from a shell.
        environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": info}
        try:
            async with asyncio.timeout(self._timeout):
                status, output = await _output(plugin, environment)
        except TimeoutError:
            raise self._error(f"gave no credentials within {self._timeout:g} s") from None
        except OSError as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise self._error(f"cannot be started: {(error.strerror or 'error').lower()}{hint}") from error
        if len(output) > OUTPUT_MAX:
            raise self._error(f"printed more than {OUTPUT_MAX} bytes")
        if status != 0:
            raise self._error(f"ended with status {status}")
        try:
            return _parse_credential(output, plugin.api_version, now=time.time(), clock=time.monotonic())
        except ValueError as error:
            raise self._error(f"printed {error}") from None  # its cause may contain the output

    def _error(self, reason: str) -> UnusableCredentials:
        return UnusableCredentials(f"exec plugin {cut(self._plugin.command)} {reason}", cause="credentials")


async def _output(plugin: ExecPlugin, environment: Mapping[str, str]) -> tuple[int, bytes]:
    """Exit status and output; output beyond OUTPUT_MAX bytes ends the program. Raises OSError."""
    transport, run = await asyncio.get_running_loop().subprocess_exec(
        _PluginRun,
        plugin.command,
        *plugin.args,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # so that its children can be ended with it
    )
    try:
        await asyncio.wait({run.exited, run.overflowed}, return_when=asyncio.FIRST_COMPLETED)
        if run.overflowed.done():
            return 0, bytes(run.output)
        # A background child may keep the output open forever; what was printed is complete.
        await asyncio.wait({run.drained}, timeout=DRAINING)
        return transport.get_returncode() or 0, bytes(run.output)
    finally:
        if not run.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
        transport.close()
        await asyncio.wait({run.exited}, timeout=DRAINING)


class _PluginRun(asyncio.SubprocessProtocol):
    """Collects the output of one process."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.output = bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.overflowed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self.output += data
        if len(self.output) > OUTPUT_MAX and not self.overflowed.done():
            self.overflowed.set_result(None)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if not self.drained.done():
            self.drained.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


def _info(plugin: ExecPlugin, access: ServerAccess) -> str:
    """KUBERNETES_EXEC_INFO: an ExecCredential with only a spec. Reads the CA's file."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        cluster: dict[str, Any] = {"server": access.url}
        tls = access.tls
        if tls.server_name is not None:
            cluster["tls-server-name"] = tls.server_name
        if tls.insecure_skip_verify:
            cluster["insecure-skip-tls-verify"] = True
        ca = tls.ca_data
        if ca is None and tls.ca_file is not None:
            with contextlib.suppress(OSError):  # connecting will report that it cannot be read
                ca = tls.ca_file.read_bytes()
        if ca is not None:
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
        if access.proxy is not None:
            cluster["proxy-url"] = access.proxy
        if plugin.cluster_config is not None:
            cluster["config"] = orjson.loads(plugin.cluster_config)
        spec["cluster"] = cluster
    return orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _parse_credential(output: bytes, api_version: str, *, now: float, clock: float) -> IssuedCredential:
    """Parse the printed ExecCredential. Raises ValueError, whose message quotes nothing of it.

    ``now``: wall clock seconds; ``clock``: monotonic seconds.
    """
    try:
        printed = orjson.loads(output)
    except orjson.JSONDecodeError:
        raise ValueError("no JSON") from None
    if not isinstance(printed, dict) or printed.get("kind") != "ExecCredential":
        raise ValueError("no ExecCredential")
    if printed.get("apiVersion") != api_version:
        raise ValueError(f"an ExecCredential of another version than {api_version}")
    status = printed.get("status")
    if not isinstance(status, dict):
        raise ValueError("an ExecCredential without a status")
    token, pair = _token_in(status), _pair(status)
    if token is None and pair is None:
        raise ValueError("an ExecCredential without credentials")
    left = _seconds_left(status.get("expirationTimestamp"), now)
    if left is None:
        return IssuedCredential(token, pair, clock)
    # A lifetime that is over at once (clocks differ) must not cause a run per request.
    renew = max(left - min(MARGIN, left / 10), GAP)
    return IssuedCredential(token, pair, clock, clock + renew, clock + max(left, GAP))


def _token_in(status: Mapping[str, Any]) -> str | None:
    token = status.get("token") or None
    if token is not None and not (isinstance(token, str) and is_bearer_value(token)):
        raise ValueError("a token that no header field can hold")
    return token


def _pair(status: Mapping[str, Any]) -> tuple[bytes, bytes] | None:
    certificate, key = (status.get(name) or None for name in ("clientCertificateData", "clientKeyData"))
    if certificate is None and key is None:
        return None
    if not isinstance(certificate, str) or not isinstance(key, str):
        raise ValueError("a client certificate without its key, or a key alone")
    return certificate.encode(), key.encode()


def _seconds_left(timestamp: object, now: float) -> float | None:
    if timestamp is None:
        return None
    try:
        end = dt.datetime.fromisoformat(str(timestamp))
    except ValueError:
        raise ValueError("an expirationTimestamp that is no time") from None
    if end.tzinfo is None:
        raise ValueError("an expirationTimestamp without a time zone")
    return end.timestamp() - now

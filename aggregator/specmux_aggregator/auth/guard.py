"""The server's guards, and the one that the settings want.

Health pages are open, the mode decides about everything else, and refusals become answers. A service for one
user answers only requests addressed to this machine: with DNS rebinding, a foreign name points here, and the
answers would expose what the user's own credentials may read. A mode is imported where it is configured.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.authenticator import (
    ALWAYS,
    Authenticator,
    AuthRefusal,
    AuthRequest,
    RefusalReason,
)
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.server.dispatch import HEALTH, target_of
from specmux_aggregator.server.protocols import ClientConnection, Guard, Permission
from specmux_aggregator.tasks import log_failure
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.credentials import Identities
from specmux_cache.access.urls import is_loopback

logger = logging.getLogger(__name__)

CHALLENGE: Final = 'Bearer realm="specmux"'

RETRY_AFTER: Final = "1"  # seconds

_OPEN: Final[Mapping[str, tuple[str, ...]]] = {
    "as-documents": (),
    "anonymous": ("/schemas/",),
    "path-token": ("/schemas/token/",),
}
"""Paths that the guard leaves to the endpoint, by ``schemas.access``."""

REVIEW_TIMEOUT: Final = 5.0
"""Most seconds for one review: a client waits for it."""

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class RequestGuard:
    """Implements the server's ``Guard`` protocol. Start once and close once, on one event loop."""

    def __init__(
        self,
        authority: Authenticator,
        metrics: Metrics,
        *,
        takes_tokens: bool,
        open_prefixes: tuple[str, ...] = (),
    ) -> None:
        """Takes ownership of ``authority``. ``takes_tokens``: whether to challenge for a token.
        ``open_prefixes``: paths open to everybody."""
        self._open_prefixes = open_prefixes
        self._authority = authority
        self._metrics = metrics
        self._takes_tokens = takes_tokens
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._authority.run(), name="authentication")
        log_failure(self._task, logger, "authentication: no longer kept current")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._authority.close()

    def complaint(self) -> str | None:
        """Why nobody can be admitted at present; None if authentication works."""
        return self._authority.complaint()

    @property
    def takes_secrets(self) -> bool:
        return self._takes_tokens

    def permits(self, message: RawRequestMessage, connection: ClientConnection) -> Permission | None:
        asked = _auth_request(message, connection)
        return ALWAYS if self._is_open(asked) else self._authority.permits(asked)

    async def refusal(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        asked = _auth_request(message, connection)
        if self._is_open(asked):
            return None
        refused = await self._authority.refuse(asked)
        if refused is None:
            return None
        self._metrics.auth.refusals.labels(refused.reason.value).inc()
        return self._answer(refused, is_head=message.method == "HEAD")

    def _is_open(self, asked: AuthRequest) -> bool:
        return asked.path in HEALTH or asked.path.startswith(self._open_prefixes)

    def _answer(self, refused: AuthRefusal, *, is_head: bool) -> PreparedAnswer:
        match refused.reason:
            case RefusalReason.MALFORMED:
                return refusal(400, "BadRequest", refused.message, is_head=is_head)
            case RefusalReason.NO_CREDENTIALS | RefusalReason.BAD_CREDENTIALS if self._takes_tokens:
                is_known = refused.reason is RefusalReason.NO_CREDENTIALS
                # RFC 6750 3.1: no error code for a request without credentials.
                challenge = CHALLENGE if is_known else f'{CHALLENGE}, error="invalid_token"'
                fields = [("WWW-Authenticate", challenge)]
                return refusal(401, "Unauthorized", refused.message, fields=fields, is_head=is_head)
            case RefusalReason.UNAVAILABLE:
                fields = [("Retry-After", RETRY_AFTER)]
                return refusal(503, "ServiceUnavailable", refused.message, fields=fields, is_head=is_head)
            case _:
                # Also without a certificate: 401 requires a challenge (RFC 9110 15.5.2), and HTTP has none
                # for TLS.
                return refusal(403, "Forbidden", refused.message, is_head=is_head)


def _auth_request(message: RawRequestMessage, connection: ClientConnection) -> AuthRequest:
    return AuthRequest(message, connection, target_of(message).partition("?")[0])


def gate_of(
    settings: Settings,
    metrics: Metrics,
    *,
    cluster: Backend | None,
    identities: Identities | None = None,
    is_authorised_elsewhere: Callable[[RawRequestMessage], bool] = lambda message: False,
) -> RequestGuard | None:
    """The guard that the settings require; None if everybody may ask.

    ``cluster``: the apiserver for reviews, contacted as one of ``identities``. Raises InvalidConfig; blocks
    on files.
    """
    auth = settings.auth
    authority: Authenticator
    match auth.mode:
        case "kubernetes":
            assert cluster is not None, "config/source.py refuses the mode without"
            from specmux_aggregator.auth.front_proxies import FrontProxies
            from specmux_aggregator.auth.kubernetes import KubernetesAuthenticator
            from specmux_aggregator.auth.reviews import Reviews

            front_proxies = None
            if auth.requestheader_ca_file is not None:
                front_proxies = FrontProxies(auth.requestheader_names)
            authority = KubernetesAuthenticator(
                Reviews(_review_client(cluster, settings, identities), metrics, audiences=auth.audiences),
                cache_seconds=auth.cache_seconds,
                review_grace=auth.review_grace,
                front_proxies=front_proxies,
                is_authorised_elsewhere=is_authorised_elsewhere,
            )
        case "token-file":
            assert auth.token_file is not None, "config/source.py refuses the mode without"
            from specmux_aggregator.auth.token_file import TokenFileAuthenticator

            authority = TokenFileAuthenticator(auth.token_file, metrics)
        case "mtls":
            from specmux_aggregator.auth.client_certificates import ClientCertificates

            authority = ClientCertificates(auth.client_names)
        case _:
            return None
    return RequestGuard(
        authority,
        metrics,
        takes_tokens=auth.mode != "mtls",
        open_prefixes=_OPEN[settings.schemas.access] if settings.schemas.enabled else (),
    )


def warn_of_exposure(settings: Settings, address: str, port: int) -> None:
    """Warn of settings that expose data to the network at the bound ``address`` and ``port``. Not refused: a
    mesh or a proxy may stand in front."""
    listen, mode = settings.listen, settings.auth.mode
    if is_loopback(address):
        return
    if mode == "none":
        logger.warning(
            "everybody who reaches %s port %d may read every document: auth.mode is none",
            address,
            port,
        )
    elif listen.tls_cert_file is None:
        logger.warning(
            "bearer tokens cross the network to %s port %d in the clear: listen.tls_cert_file is not set",
            address,
            port,
        )


def _review_client(cluster: Backend, settings: Settings, identities: Identities | None) -> BackendClient:
    polling = settings.polling
    bounded = replace(
        polling,
        connect_timeout=min(polling.connect_timeout, REVIEW_TIMEOUT),
        idle_timeout=min(polling.idle_timeout, REVIEW_TIMEOUT),
        total_timeout=min(polling.total_timeout, REVIEW_TIMEOUT),
    )
    return BackendClient(cluster, polling=bounded, limits=settings.limits, identities=identities)


class LoopbackHosts:
    """Implements the server's ``Guard`` protocol, optionally in front of another guard."""

    def __init__(self, inner: Guard | None) -> None:
        self._inner = inner

    @property
    def takes_secrets(self) -> bool:
        return self._inner is not None and self._inner.takes_secrets

    def permits(self, message: RawRequestMessage, connection: ClientConnection) -> Permission | None:
        if not is_addressed_to_loopback(message):
            return None
        return ALWAYS if self._inner is None else self._inner.permits(message, connection)

    async def refusal(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        if not is_addressed_to_loopback(message):
            return refusal(
                403,
                "Forbidden",
                "this page answers under 127.0.0.1 and localhost alone",
                is_head=message.method == "HEAD",
            )
        return None if self._inner is None else await self._inner.refusal(message, connection)


def is_addressed_to_loopback(message: RawRequestMessage) -> bool:
    """Whether the Host of the request is this machine, whatever its port."""
    hosts = message.headers.getall("Host", ())
    if len(hosts) != 1:
        return False
    name, colon, port = hosts[0].rpartition(":")
    host = name if colon and port.isdecimal() else hosts[0]
    return host.lower() in LOOPBACK

"""The server's guard: health pages are open, the mode decides about everything else; refusals become
answers."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.authenticator import (
    ALWAYS,
    Authenticator,
    AuthRefusal,
    AuthRequest,
    RefusalReason,
)
from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.server.dispatch import HEALTH
from specmux_aggregator.server.protocols import ClientConnection, Permission
from specmux_aggregator.server.requests import target_of
from specmux_aggregator.tasks import log_failure

logger = logging.getLogger(__name__)

CHALLENGE: Final = 'Bearer realm="specmux"'

RETRY_AFTER: Final = "1"  # seconds


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

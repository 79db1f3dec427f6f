"""The interface of authentication modes: a caller is admitted, or refused for one of few reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from aiohttp.http import RawRequestMessage

from specmux_aggregator.server.protocols import ClientConnection, Permission


class RefusalReason(StrEnum):
    """Why a caller is refused; also a metric label, so the set is closed."""

    MALFORMED = "malformed"
    NO_CREDENTIALS = "no_credentials"
    BAD_CREDENTIALS = "bad_credentials"
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"
    """The deciding server cannot be reached now."""


@dataclass(frozen=True, slots=True)
class AuthRefusal:
    """``message`` is for the caller; it contains no credentials."""

    reason: RefusalReason
    message: str


class AuthRequest(NamedTuple):
    """The parts of a request that permission depends on. A tuple, since one is made per request: half the
    cost of a dataclass."""

    message: RawRequestMessage
    connection: ClientConnection
    path: str
    """The path as received, without query and origin: the service looks up the same text."""

    @property
    def verb(self) -> str:
        """The verb of roles: post for objects to validate, get for reads."""
        return "post" if self.message.method == "POST" else "get"


class Lasting:
    """A permission that always lasts, or never does."""

    __slots__ = ("_lasts",)

    def __init__(self, *, lasts: bool) -> None:
        self._lasts = lasts

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return self._lasts


ALWAYS: Final = Lasting(lasts=True)
"""Permission for everybody."""

ONCE: Final = Lasting(lasts=False)
"""Permission for this request only; the next one with equal bytes is checked again."""


class Authenticator(Protocol):
    """An authentication mode."""

    def permits(self, asked: AuthRequest) -> Permission | None:
        """The permission if it is in memory. Called for every request, so it must be cheap and not wait."""

    async def refuse(self, asked: AuthRequest) -> AuthRefusal | None:
        """The decision, which may have to wait."""

    def complaint(self) -> str | None:
        """Why nobody can be admitted at present, in words fit for everybody."""

    async def run(self) -> None:
        """Keep the basis of decisions current, forever."""

    async def close(self) -> None:
        """Close connections."""

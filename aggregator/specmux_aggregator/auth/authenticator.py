"""What each mode decides, and the words for it: a caller is let in, or is refused for one of few reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from aiohttp.http import RawRequestMessage

from specmux_aggregator.server.protocols import ClientConnection, Permission


class RefusalReason(StrEnum):
    """Why a caller is refused; also the metric label, so the list is closed."""

    MALFORMED = "malformed"
    NO_CREDENTIALS = "no_credentials"
    BAD_CREDENTIALS = "bad_credentials"
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"
    """Whoever decides cannot be asked now."""


@dataclass(frozen=True, slots=True)
class AuthRefusal:
    """``message`` is for the caller: without anybody's credentials."""

    reason: RefusalReason
    message: str


class AuthRequest(NamedTuple):
    """One request, as far as permission depends on it. Made for every one: a tuple takes half as long."""

    message: RawRequestMessage
    connection: ClientConnection
    path: str
    """As on the wire, without query and origin: the service looks up the same text."""

    @property
    def verb(self) -> str:
        """As roles name it: post for what is sent to be checked, get for all that is read."""
        return "post" if self.message.method == "POST" else "get"


class Lasting:
    """A permission that lasts, or never does."""

    __slots__ = ("_lasts",)

    def __init__(self, *, lasts: bool) -> None:
        self._lasts = lasts

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        return self._lasts


ALWAYS: Final = Lasting(lasts=True)
"""For everybody."""

ONCE: Final = Lasting(lasts=False)
"""For this request; the next one of the same bytes is looked at again."""


class Authenticator(Protocol):
    """One mode."""

    def permits(self, asked: AuthRequest) -> Permission | None:
        """The permission that is at hand. Asked about every request: cheap, and without waiting."""

    async def refuse(self, asked: AuthRequest) -> AuthRefusal | None:
        """The decision, whatever it takes."""

    def complaint(self) -> str | None:
        """Why nobody can be let in at present, in words that everybody may read."""

    async def run(self) -> None:
        """Keep what decisions rest on current, for ever."""

    async def close(self) -> None:
        """Let go of connections."""

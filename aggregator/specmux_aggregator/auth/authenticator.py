"""What each mode decides, and the words for it: a caller is let in, or is refused for one of few reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from aiohttp.http import RawRequestMessage

from specmux_aggregator.server.protocols import ClientConnection


class Reason(StrEnum):
    """Why a caller is refused; also the metric label, so the list is closed."""

    MALFORMED = "malformed"
    NO_CREDENTIALS = "no_credentials"
    BAD_CREDENTIALS = "bad_credentials"
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"
    """Whoever decides cannot be asked now."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """``message`` is for the caller: without anybody's credentials."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as leave depends on it."""

    message: RawRequestMessage
    connection: ClientConnection
    path: str
    """As on the wire, without query and origin: the service looks up the same text."""


class Authenticator(Protocol):
    """One mode."""

    def permits(self, asked: Asked) -> bool:
        """Whether leave is at hand. Asked about every request: cheap, and without waiting."""

    async def refuse(self, asked: Asked) -> Refusal | None:
        """The decision, whatever it takes."""

    def complaint(self) -> str | None:
        """Why nobody can be let in at present, in words that everybody may read."""

    async def run(self) -> None:
        """Keep what decisions rest on current, for ever."""

    async def close(self) -> None:
        """Let go of connections."""

"""What the HTTP server asks of the service behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from specmux_aggregator.model import Prepared, Request


class Service(Protocol):
    """What answers. Its answers depend on nothing but the Request, the generation and ``good_until``."""

    @property
    def generation(self) -> int:
        """Changes whenever an answer that was given may have become stale."""

    def immediate(self, request: Request) -> Prepared | None:
        """The answer if it is at hand; None if it has to be waited for."""

    async def respond(self, request: Request) -> Prepared:
        """The answer, always. Raises nothing but CancelledError."""

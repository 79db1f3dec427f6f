"""Media types that a server would not give a document in.

KEP-4222's clients remember a 415 for ever and for the whole client; here it is per document, and it ends.
"""

from __future__ import annotations

from collections.abc import Callable

from specmux_cache.http.media_types import CBOR, JSON


class Refusals:
    """Of one server. JSON is never remembered as refused: there is nothing to fall back to."""

    def __init__(self, ttl: float, *, clock: Callable[[], float]) -> None:
        self._ttl = ttl
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def note(self, name: str, media_types: tuple[str, ...]) -> None:
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until.update({(name, media): now + self._ttl for media in media_types if media != JSON})

    def left(self, name: str, accepted: tuple[str, ...]) -> tuple[str, ...]:
        """What of this may be asked for now."""
        now = self._clock()
        # A clock set back must not make a refusal last longer than its time.
        return tuple(
            media for media in accepted if not 0 < self._until.get((name, media), 0) - now <= self._ttl
        )


class UnsupportedRequests:
    """Of one server, what answered 415 to a body of CBOR: verbs of kinds, or all of it. client-go has the
    second alone, for the life of its client; KEP-4222 asks for the first."""

    def __init__(self, ttl: float, *, clock: Callable[[], float]) -> None:
        self._refusals = Refusals(ttl, clock=clock)

    def note(self, request: str = "") -> None:
        """The name of a request; "" is all."""
        self._refusals.note(request, (CBOR,))

    def takes(self, request: str) -> bool:
        """As far as is known."""
        return all(self._refusals.left(name, (CBOR,)) for name in ("", request))

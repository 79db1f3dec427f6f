"""Media types in which a server refused a document.

KEP-4222's clients remember a 415 forever and for the whole client; here it applies to one document, and
expires.
"""

from __future__ import annotations

from collections.abc import Callable

from specmux_cache.http.media_types import CBOR, JSON


class Refusals:
    """The refusals of one server. JSON is never recorded as refused, since there is no fallback."""

    def __init__(self, ttl: float, *, clock: Callable[[], float]) -> None:
        self._ttl = ttl
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def note(self, name: str, media_types: tuple[str, ...]) -> None:
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until.update({(name, media): now + self._ttl for media in media_types if media != JSON})

    def list_supported(self, name: str, accepted: tuple[str, ...]) -> tuple[str, ...]:
        """The types that may be requested now."""
        now = self._clock()
        # If the clock was set back, a refusal must not last longer than its duration.
        return tuple(
            media for media in accepted if not 0 < self._until.get((name, media), 0) - now <= self._ttl
        )


class UnsupportedRequests:
    """Requests of one server that answered 415 to CBOR: verbs of kinds, or all. client-go has only the
    latter, for the life of its client; KEP-4222 asks for the former."""

    def __init__(self, ttl: float, *, clock: Callable[[], float]) -> None:
        self._refusals = Refusals(ttl, clock=clock)

    def note(self, request: str = "") -> None:
        """Record a request by name; "" means all."""
        self._refusals.note(request, (CBOR,))

    def takes(self, request: str) -> bool:
        """Whether CBOR may be sent, as far as known."""
        return all(self._refusals.list_supported(name, (CBOR,)) for name in ("", request))

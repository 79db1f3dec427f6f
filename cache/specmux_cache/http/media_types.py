"""The media types of OpenAPI documents: accepted, received, and refused by a server.

KEP-4222's clients remember a 415 forever and for the whole client; here it applies to one document, and
expires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from specmux_converters import media_types
from specmux_converters.lazy.patterns import pattern
from specmux_converters.media_types import FORMS, SELF_DESCRIBED_CBOR

JSON: Final[str] = media_types.JSON
CBOR: Final[str] = media_types.CBOR
PROTOBUF: Final[str] = media_types.PROTOBUF
JSON_SCHEMAS: Final[str] = media_types.JSON_SCHEMAS
"""JSON without paths, from servers that know this profile; others return the whole document (RFC 9110
12.5.1)."""
ALIASES: Final[dict[str, str]] = {
    **{form.name: media_type for media_type, form in FORMS.items()},
    **media_types.ALIASES,
    "schemas": JSON_SCHEMAS,
}
_SCHEMAS: Final = pattern(r"(?:^|;)\s*profile\s*=\s*\"?schemas\"?\s*(?:;|\Z)")
VAGUE: Final = frozenset({"", "text/plain", "application/octet-stream"})
"""Unspecific types that servers send by default: kube-aggregator's root is ``text/plain``."""


def canonical(media_type: str) -> str:
    """Lower case, aliases resolved, without parameters except the profile ``schemas``. Accepts the short
    names ``json``, ``cbor``, ``protobuf`` and ``schemas``."""
    name, _, parameters = media_type.lower().partition(";")
    if name.strip() == JSON and _SCHEMAS.search(parameters):
        return JSON_SCHEMAS
    return ALIASES.get(name.strip(), name.strip())


def accepted_for(media: str) -> tuple[str, ...]:
    """The accepted types for a requested one, best first: for a profile, the whole document as well."""
    name = canonical(media)
    return (name, JSON) if name == JSON_SCHEMAS else (name,)


def accepted_by_gates(*, allow_cbor: bool, prefer_cbor: bool) -> tuple[str, ...]:
    """The accepted types according to KEP-4222's two client gates, best first. Preferring requires
    allowing."""
    if not allow_cbor:
        return (JSON,)
    return (CBOR, JSON) if prefer_cbor else (JSON, CBOR)


def accept_field(accepted: tuple[str, ...]) -> str:
    """An Accept field with this order of preference."""
    weights = [
        f"{name};q={1 - position / 10:.1f}" if position else name for position, name in enumerate(accepted)
    ]
    return ", ".join(weights)


def find_answer_type(content_type: str | None, body: bytes, accepted: tuple[str, ...]) -> str | None:
    """The accepted type that a body has; None if it has none of them. An unspecific type is decided by the
    body."""
    named = canonical(content_type or "")
    if named in accepted:
        return named
    if named not in VAGUE:
        return None
    if body.startswith(SELF_DESCRIBED_CBOR):
        seen = CBOR
    elif body.lstrip()[:1] == b"{":
        seen = JSON
    else:
        return None
    return seen if seen in accepted else None


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

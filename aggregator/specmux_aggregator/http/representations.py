"""Fields and refusals that every representation shares (RFC 9110, RFC 9111). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from specmux_aggregator.http.messages import ETag, Request
from specmux_aggregator.http.prepared import Prepared, refusal
from specmux_converters.media_types import CBOR, JSON, PROTOBUF, MediaType

FORMATS: Final = {JSON: "json", PROTOBUF: "protobuf", CBOR: "cbor"}


VARY: Final = ("Vary", "Accept, Accept-Encoding")


NO_STORE: Final = ("Cache-Control", "no-store")


ALLOW: Final = ("Allow", "GET, HEAD")


REASONS: Final = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    412: "PreconditionFailed",
    503: "ServiceUnavailable",
}


def not_acceptable(offered: Iterable[MediaType], request: Request, *, route: str) -> Prepared:
    """406 that lists what there is."""
    return status_reply(
        406,
        "only the following media types are accepted: " + ", ".join(offered),
        route=route,
        request=request,
        fields=[VARY],
    )


def status_reply(
    code: int, message: str, *, route: str, request: Request, fields: Iterable[tuple[str, str]] = ()
) -> Prepared:
    """The Status of an error that the contract names."""
    is_head = request.method == "HEAD"
    return refusal(code, REASONS[code], message, fields=fields, is_head=is_head, route=route)


def cache_control(*, is_immutable: bool, is_private: bool) -> tuple[str, str]:
    """Who may keep an answer and for how long. With authentication on, only the client that got it: a shared
    cache would give it to whoever comes next (RFC 9111 3.5 lets "public" override Authorization)."""
    if is_immutable:
        return "Cache-Control", f"{'private' if is_private else 'public'}, max-age=31536000, immutable"
    return "Cache-Control", "private, no-cache" if is_private else "no-cache"


def names(field: str, etag: ETag, *, weak: bool) -> bool:
    """Whether a list of entity tags names this one (RFC 9110 8.8.3.2: weak comparison ignores the W/
    mark)."""
    for element in field.split(","):
        tag = element.strip(" \t")
        if tag == "*" or tag == etag or (weak and tag.startswith("W/") and tag[2:] == etag):
            return True
    return False

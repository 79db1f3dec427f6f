"""One conditional GET for every endpoint: validators, caching rules, and answers that need no bytes (RFC 9110
13, RFC 9111). Pure.

An endpoint creates a ``Representation``, asks ``settled`` for an answer without bytes, and only then fetches
the bytes for ``delivered``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.prepared import PreparedAnswer, prepare, refusal
from specmux_converters.media_types import CBOR, JSON, JSON_COMPONENTS, JSON_SCHEMAS, PROTOBUF, PROTOBUF_V2

FORMATS: Final = {JSON: "json", PROTOBUF: "protobuf", PROTOBUF_V2: "protobuf", CBOR: "cbor"} | {
    JSON_SCHEMAS: "schemas",
    JSON_COMPONENTS: "components",
}

VARY: Final = ("Vary", "Accept, Accept-Encoding")
NO_STORE: Final = ("Cache-Control", "no-store")
ALLOW: Final = ("Allow", "GET, HEAD")

REASONS: Final = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    412: "PreconditionFailed",
    431: "RequestHeaderFieldsTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """What an answer says of one representation, apart from its bytes."""

    content_type: str
    etag: ETag
    """Strong: equal tags promise equal bytes, content coding included."""
    route: str
    """Metric label."""
    format: str
    """Metric label."""
    coding: Coding = Coding.IDENTITY
    is_immutable: bool = False
    """Whether the URL names exactly this content, forever."""
    is_private: bool = False
    """Whether access is restricted, so no shared cache may store it."""
    is_head: bool = False
    is_stale: bool = False
    """Whether its backend is failing; counted, not shown to the client."""
    fields: tuple[tuple[str, str], ...] = ()
    """Additional header fields of the 200 and the 304."""

    @property
    def expires(self) -> bool:
        """Whether to send Expires with the value of max-age: caches of HTTP/1.0 understand it, but not
        ``private``."""
        return self.is_immutable and not self.is_private


def settled(representation: Representation, request: Request) -> PreparedAnswer | None:
    """The answer that needs no bytes, 412 or 304, in the order of RFC 9110 13.2.2; None: use
    ``delivered``."""
    etag, route = representation.etag, representation.route
    if request.if_match is not None and not names(request.if_match, etag, weak=False):
        return status_reply(412, "If-Match names another representation", route=route, request=request)
    if request.if_none_match is None or not names(request.if_none_match, etag, weak=True):
        return None
    # No Content-* fields: RFC 9110 15.4.5, and client-go's cache would merge them into its entry.
    fields = [*_validating(representation), *representation.fields]
    return _prepared(representation, 304, fields)


def delivered(representation: Representation, body: bytes) -> PreparedAnswer:
    """The 200 with ``body``, which has the representation's content coding."""
    fields = [("Content-Type", representation.content_type), *_validating(representation)]
    if representation.coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", representation.coding.value))
    fields.extend(representation.fields)
    return _prepared(representation, 200, fields, body)


def _prepared(
    representation: Representation, status: int, fields: list[tuple[str, str]], body: bytes = b""
) -> PreparedAnswer:
    answer = prepare(
        status,
        fields,
        body,
        is_head=representation.is_head,
        is_immutable=representation.expires,
        route=representation.route,
        format=representation.format,
    )
    return replace(answer, is_stale=True) if representation.is_stale else answer


def not_acceptable(offered: Iterable[str], request: Request, *, route: str) -> PreparedAnswer:
    """406 with a list of what is offered."""
    message = "only the following media types are accepted: " + ", ".join(offered)
    return status_reply(406, message, route=route, request=request, fields=[VARY])


def method_not_allowed(
    request: Request, *, route: str, fields: Iterable[tuple[str, str]] = ()
) -> PreparedAnswer:
    """405 for a resource that is read-only."""
    message = "only GET and HEAD are allowed here"
    return status_reply(405, message, route=route, request=request, fields=[ALLOW, *fields])


def status_reply(
    code: int, message: str, *, route: str, request: Request, fields: Iterable[tuple[str, str]] = ()
) -> PreparedAnswer:
    """The Status of an error named in the HTTP contract."""
    is_head = request.method == "HEAD"
    return refusal(code, REASONS[code], message, fields=fields, is_head=is_head, route=route)


def cache_control(*, is_immutable: bool, is_private: bool) -> tuple[str, str]:
    """Cache-Control. With authentication on, only the receiving client may store the answer: a shared cache
    would give it to others (RFC 9111 3.5 lets "public" override Authorization)."""
    if is_immutable:
        return "Cache-Control", f"{'private' if is_private else 'public'}, max-age=31536000, immutable"
    return "Cache-Control", "private, no-cache" if is_private else "no-cache"


def names(field: str, etag: ETag, *, weak: bool) -> bool:
    """Whether a list of entity tags contains this one (RFC 9110 8.8.3.2: weak comparison ignores the W/
    mark)."""
    for element in field.split(","):
        tag = element.strip(" \t")
        if tag == "*" or tag == etag or (weak and tag.startswith("W/") and tag[2:] == etag):
            return True
    return False


def _validating(representation: Representation) -> list[tuple[str, str]]:
    control = cache_control(is_immutable=representation.is_immutable, is_private=representation.is_private)
    return [control, ("ETag", representation.etag), VARY]

"""The answer to a request, given a Snapshot: the HTTP contract in one place. Pure.

``decide`` ends in one of three: an answer that is ready (``Prepared``), a document whose bytes have to be
found first (``Deliver``, finished by ``deliver``), or a hash that nobody here knows, for which the owner
should be asked once before the client is sent elsewhere (``Revalidate``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.endpoints.hash_query import AskedHash, BadQuery, asked_hash, with_hash
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import MEDIA_TYPES, coding_for, media_type_for
from specmux_aggregator.http.prepared import Prepared, prepare
from specmux_aggregator.http.representations import (
    ALLOW,
    FORMATS,
    NO_STORE,
    VARY,
    cache_control,
    names,
    not_acceptable,
    status_reply,
)
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON, MediaType

ROOT_PATH: Final = "/openapi/v3"
DOCUMENT_PREFIX: Final = "/openapi/v3/"

ROUTE_ROOT: Final = "openapi_root"
ROUTE_DOCUMENT: Final = "openapi_document"

ROOT_MEDIA_TYPES: Final = (JSON, CBOR)
"""The root is no OpenAPI document: gnostic's Protobuf has no message for it."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """A document in one form; its bytes are to be found under ``key``."""

    key: DocumentKey
    media_type: MediaType
    coding: Coding
    is_immutable: bool
    is_head: bool
    route: str
    is_private: bool = False
    losses: int = 0
    """Constructs that conversion lost; told to clients, who may want to know."""


@dataclass(frozen=True, slots=True)
class Revalidate:
    """The asked hash is not the one published; the owner may know it already."""

    owner: BackendName


Decision = Prepared | Deliver | Revalidate


def decide(
    snapshot: Snapshot,
    request: Request,
    *,
    offered: tuple[MediaType, ...] = MEDIA_TYPES,
    is_private: bool = False,
    vouched_until: float | None = None,
) -> Decision | None:
    """What to answer; None for a path that is not ours.

    ``offered``: media types that the document has a form in (a document may have none in Protobuf).
    ``is_private``: not everybody may have the answer, so no shared cache may keep it.
    ``vouched_until``: monotonic seconds until which the published hash may be taken as the backend's own;
    None: not at all, and a hash that differs ends in ``Revalidate``.
    """
    path = request.path
    if path == ROOT_PATH:
        return _decide_root(snapshot, request, is_private=is_private)
    if not path.startswith(DOCUMENT_PREFIX):
        return None
    if request.method not in ("GET", "HEAD"):
        return _method_not_allowed(ROUTE_DOCUMENT)
    group_version = GroupVersion(path[len(DOCUMENT_PREFIX) :])
    entry = snapshot.entries.get(group_version)
    if entry is None:
        return _unknown(snapshot, group_version, request)
    try:
        asked = asked_hash(request.query)
    except BadQuery as error:
        return status_reply(400, str(error), route=ROUTE_DOCUMENT, request=request)
    if asked is not None and asked.hash != entry.offer.hash:
        if vouched_until is None:
            return Revalidate(entry.owner)
        return _redirect(request, asked, entry.key, vouched_until)
    decision = _represent(
        request,
        entry.key,
        offered,
        is_immutable=asked is not None,
        is_private=is_private,
        route=ROUTE_DOCUMENT,
    )
    return replace(decision, losses=entry.offer.losses) if isinstance(decision, Deliver) else decision


def deliver(wanted: Deliver, body: bytes) -> Prepared:
    """The 200 that carries ``body``."""
    return prepare(
        200,
        _representation_fields(wanted),
        body,
        is_head=wanted.is_head,
        is_immutable=_expires(wanted),
        route=wanted.route,
        format=FORMATS[wanted.media_type],
    )


def unavailable(failure: Failure, request: Request, *, retry_after: float) -> Prepared:
    """503 for a document that its owner cannot give now and nobody kept."""
    message = f"the document is not available: its backend failed ({failure.cause})"
    return _unready(message, request, retry_after=retry_after)


def etag_of(key: DocumentKey, media_type: MediaType, coding: Coding) -> ETag:
    """The strong validator of one representation.

    It follows from the hash, so a 304 needs no bytes; and it differs between forms, since one tag for two
    byte strings made clients take JSON for Protobuf (KEP-2896's spec3BytesETag, spec3PbETag, spec3PbGzETag).
    """
    form = "" if media_type == JSON else f"-{FORMATS[media_type]}"
    coded = "" if coding is Coding.IDENTITY else f"-{coding.value}"
    return ETag(f'"{key.hash}{form}{coded}"')


def _decide_root(snapshot: Snapshot, request: Request, *, is_private: bool) -> Decision:
    if request.method not in ("GET", "HEAD"):
        return _method_not_allowed(ROUTE_ROOT)
    # The reference ignores Accept here, and clients that accept only their own resource format get the root
    # from it all the same: JSON for whoever takes neither form.
    if media_type_for(request.accept, ROOT_MEDIA_TYPES) is None:
        request = replace(request, accept=None)
    return _represent(
        request,
        snapshot.root,
        ROOT_MEDIA_TYPES,
        is_immutable=False,
        is_private=is_private,
        route=ROUTE_ROOT,
    )


def _represent(
    request: Request,
    key: DocumentKey,
    offered: tuple[MediaType, ...],
    *,
    is_immutable: bool,
    is_private: bool,
    route: str,
) -> Decision:
    media_type = media_type_for(request.accept, offered)
    if media_type is None:
        return not_acceptable(offered, request, route=route)
    wanted = Deliver(
        key,
        media_type,
        coding_for(request.accept_encoding),
        is_immutable,
        request.method == "HEAD",
        route,
        is_private,
    )
    etag = etag_of(key, media_type, wanted.coding)
    if request.if_match is not None and not names(request.if_match, etag, weak=False):
        return status_reply(412, "If-Match names another representation", route=route, request=request)
    if request.if_none_match is not None and names(request.if_none_match, etag, weak=True):
        # No Content-* fields: RFC 9110 15.4.5, and client-go's cache would merge them into its entry.
        fields = [field for field in _representation_fields(wanted) if not field[0].startswith("Content-")]
        return prepare(304, fields, is_immutable=_expires(wanted), route=route, format=FORMATS[media_type])
    return wanted


def _representation_fields(wanted: Deliver) -> list[tuple[str, str]]:
    fields = [
        ("Content-Type", str(wanted.media_type)),
        cache_control(is_immutable=wanted.is_immutable, is_private=wanted.is_private),
        ("ETag", etag_of(wanted.key, wanted.media_type, wanted.coding)),
        VARY,
    ]
    if wanted.coding is not Coding.IDENTITY:
        fields.append(("Content-Encoding", wanted.coding.value))
    if wanted.losses:
        fields.append(("Specmux-Losses", str(wanted.losses)))
    return fields


def _expires(wanted: Deliver) -> bool:
    """Whether Expires may say what max-age says: a cache of HTTP/1.0 knows it, and not ``private``."""
    return wanted.is_immutable and not wanted.is_private


def _redirect(request: Request, asked: AskedHash, key: DocumentKey, vouched_until: float) -> Prepared:
    # Relative, so that it holds behind any path prefix (k/k#117463); not stored, so that a backend that goes
    # back to an earlier document cannot leave two redirects pointing at each other in a cache.
    location = "?" + with_hash(request.query, asked, key.hash)
    return prepare(
        301,
        [("Location", location), NO_STORE],
        is_head=request.method == "HEAD",
        route=ROUTE_DOCUMENT,
        good_until=vouched_until,
    )


def _unknown(snapshot: Snapshot, group_version: GroupVersion, request: Request) -> Prepared:
    """404, but 503 while it may still turn out to exist: a backend was not heard yet, or its owner is
    failing."""
    observations = snapshot.observations.values()
    for observation in observations:
        owned = observation.backend.group_versions
        if observation.failure is not None and owned is not None and group_version in owned:
            retry_after = observation.failure.retry_after or 1
            return unavailable(observation.failure, request, retry_after=retry_after)
    if all(observation.attempted for observation in observations):
        return status_reply(
            404, "the server could not find the requested resource", route=ROUTE_DOCUMENT, request=request
        )
    return _unready("a backend that may have the document has not answered yet", request, retry_after=1)


def _unready(message: str, request: Request, *, retry_after: float) -> Prepared:
    fields = [("Retry-After", str(max(1, round(retry_after))))]
    return status_reply(503, message, route=ROUTE_DOCUMENT, request=request, fields=fields)


def _method_not_allowed(route: str) -> Prepared:
    return status_reply(
        405, "only GET and HEAD are allowed here", route=route, request=Request("GET", ""), fields=[ALLOW]
    )

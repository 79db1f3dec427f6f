"""The answer to a request for documents, given a Snapshot: the HTTP contract in one place. Pure.

``decide`` returns one of three: a complete answer (``PreparedAnswer``), a document whose bytes have to be
found first (``Deliver``, completed by ``delivered``), or an unknown hash, about which the owner should be
asked once before the client is redirected (``Revalidate``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.endpoints.hash_query import AskedHash, BadQuery, asked_hash, with_hash
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import MEDIA_TYPES, coding_for, media_type_for, profiled
from specmux_aggregator.http.prepared import PreparedAnswer, prepare
from specmux_aggregator.http.representations import (
    FORMATS,
    NO_STORE,
    Representation,
    method_not_allowed,
    not_acceptable,
    settled,
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

FIRST_LOOK_STEP: Final = 0.1
"""Seconds for which an answer about the first check of backends may be repeated."""

ROOT_MEDIA_TYPES: Final = (JSON, CBOR)
"""The root is not an OpenAPI document: gnostic's Protobuf has no message for it."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """A document in one form; ``key`` finds its bytes."""

    key: DocumentKey
    media_type: MediaType
    representation: Representation


@dataclass(frozen=True, slots=True)
class Revalidate:
    """The requested hash is not the published one; the owner may already have it."""

    owner: BackendName
    is_unknown: bool = False
    """Whether no document of the group-version is published."""


Decision = PreparedAnswer | Deliver | Revalidate


def decide(
    snapshot: Snapshot,
    request: Request,
    *,
    offered: Callable[[DocumentKey], tuple[MediaType, ...]] = lambda _: MEDIA_TYPES,
    vouched_until: Callable[[BackendName], float | None] = lambda _: None,
    is_checked: bool = False,
    is_private: bool = False,
) -> Decision | None:
    """The decision; None for a path outside ``/openapi/v3``.

    ``offered``: media types in which a document exists (it may have no Protobuf form). ``vouched_until``:
    monotonic seconds until which a published hash counts as the backend's own; None: not at all, so another
    hash leads to ``Revalidate``. ``is_checked``: whether the backend was asked after the request arrived.
    ``is_private``: access is restricted, so no shared cache may store the answer.
    """
    path = request.path
    if path == ROOT_PATH:
        return _decide_root(snapshot, request, is_private=is_private)
    if not path.startswith(DOCUMENT_PREFIX):
        return None
    if request.method not in ("GET", "HEAD"):
        return method_not_allowed(request, route=ROUTE_DOCUMENT)
    group_version = GroupVersion(path[len(DOCUMENT_PREFIX) :])
    entry = snapshot.entries.get(group_version)
    if entry is None and not request.query:
        return _unknown(snapshot, group_version, request)
    try:
        asked = asked_hash(request.query)
    except BadQuery as error:
        return status_reply(400, str(error), route=ROUTE_DOCUMENT, request=request)
    if entry is None:
        owner = None if asked is None or is_checked else _possible_owner(snapshot, group_version)
        return (
            _unknown(snapshot, group_version, request)
            if owner is None
            else Revalidate(owner, is_unknown=True)
        )
    is_stale = snapshot.observations[entry.owner].failure is not None
    is_current = asked is not None and asked.hash == entry.offer.hash
    if asked is not None and not is_current:
        until = vouched_until(entry.owner)
        if until is None:
            return Revalidate(entry.owner)
        if not asked.is_redirected:
            return _redirect(request, asked, entry.key, until, is_stale=is_stale)
        # Another replica has, or had, that hash; redirected there, the client might come back. Answer with
        # the current document, as without a hash.
    media_types = offered(entry.key)
    media_type = profiled(media_type_for(request.accept, media_types), request.accept)
    if media_type is None:
        return not_acceptable(media_types, request, route=ROUTE_DOCUMENT)
    return _represent(
        request,
        entry.key,
        media_type,
        is_immutable=is_current,
        is_private=is_private,
        is_stale=is_stale,
        route=ROUTE_DOCUMENT,
        losses=entry.offer.losses,
    )


def unavailable(failure: Failure, request: Request, *, retry_after: float) -> PreparedAnswer:
    """503 for a document that its owner cannot deliver now and that is not cached."""
    message = f"the document is not available: its backend failed ({failure.cause})"
    return unready(message, request, retry_after=retry_after)


def looking(request: Request, *, now: float) -> PreparedAnswer:
    """503 for a root without documents, or an absent document, while the first check of backends is under
    way.

    ``now``: monotonic seconds.
    """
    answer = unready("the backends are being asked for the first time", request, retry_after=1)
    route = ROUTE_ROOT if request.path == ROOT_PATH else ROUTE_DOCUMENT
    return replace(answer, route=route, good_until=now + FIRST_LOOK_STEP)


def etag_of(key: DocumentKey, media_type: MediaType, coding: Coding) -> ETag:
    """The strong validator of one representation.

    It follows from the hash, so a 304 needs no bytes. It differs between forms: with one tag for two byte
    strings, clients took JSON for Protobuf (KEP-2896's spec3BytesETag, spec3PbETag, spec3PbGzETag).
    """
    form = "" if media_type == JSON else f"-{FORMATS[media_type]}"
    coded = "" if coding is Coding.IDENTITY else f"-{coding.value}"
    return ETag(f'"{key.hash}{form}{coded}"')


def _decide_root(snapshot: Snapshot, request: Request, *, is_private: bool) -> Decision:
    if request.method not in ("GET", "HEAD"):
        return method_not_allowed(request, route=ROUTE_ROOT)
    # The reference ignores Accept here, and clients that accept only their own resource format still get the
    # root: send JSON to clients that accept neither form.
    return _represent(
        request,
        snapshot.root,
        media_type_for(request.accept, ROOT_MEDIA_TYPES) or JSON,
        is_immutable=False,
        is_private=is_private,
        route=ROUTE_ROOT,
    )


def _represent(
    request: Request,
    key: DocumentKey,
    media_type: MediaType,
    *,
    is_immutable: bool,
    is_private: bool,
    route: str,
    is_stale: bool = False,
    losses: int = 0,
) -> Decision:
    coding = coding_for(request.accept_encoding)
    representation = Representation(
        content_type=media_type,
        etag=etag_of(key, media_type, coding),
        route=route,
        format=FORMATS[media_type],
        coding=coding,
        is_immutable=is_immutable,
        is_private=is_private,
        is_head=request.method == "HEAD",
        is_stale=is_stale,
        # Tell clients about constructs that conversion lost.
        fields=(("Specmux-Losses", str(losses)),) if losses else (),
    )
    return settled(representation, request) or Deliver(key, media_type, representation)


def _redirect(
    request: Request, asked: AskedHash, key: DocumentKey, vouched_until: float, *, is_stale: bool
) -> PreparedAnswer:
    # Relative, so that it works behind any path prefix (k/k#117463). Not stored: if a backend returns to an
    # earlier document, a cache would hold two redirects pointing at each other.
    location = "?" + with_hash(request.query, asked, key.hash)
    is_head = request.method == "HEAD"
    answer = prepare(301, [("Location", location), NO_STORE], is_head=is_head, route=ROUTE_DOCUMENT)
    return replace(answer, is_stale=is_stale, good_until=vouched_until)


def _possible_owner(snapshot: Snapshot, group_version: GroupVersion) -> BackendName | None:
    """A backend that may have the group-version by now; a replica that asked it later may have published the
    hash."""
    for name, observation in snapshot.observations.items():
        backend = observation.backend
        if backend.url and observation.failure is None and backend.owns(group_version):
            return name
    return None


def _unknown(snapshot: Snapshot, group_version: GroupVersion, request: Request) -> PreparedAnswer:
    """404, or 503 while the document may still appear: a backend has not answered yet, or its owner is
    failing."""
    for observation in snapshot.observations.values():
        owned = observation.backend.group_versions
        if observation.failure is not None and owned is not None and group_version in owned:
            retry_after = observation.failure.retry_after or 1
            return unavailable(observation.failure, request, retry_after=retry_after)
        if request.query and any(server.failure is not None for server in observation.servers):
            # Another replica may have it from a server that does not answer here.
            return unready("a server that may have the document does not answer", request, retry_after=1)
    if not snapshot.is_partial:
        return status_reply(
            404, "the server could not find the requested resource", route=ROUTE_DOCUMENT, request=request
        )
    return unready("a backend that may have the document has not answered yet", request, retry_after=1)


def unready(message: str, request: Request, *, retry_after: float) -> PreparedAnswer:
    fields = [("Retry-After", str(max(1, round(retry_after))))]
    return status_reply(503, message, route=ROUTE_DOCUMENT, request=request, fields=fields)

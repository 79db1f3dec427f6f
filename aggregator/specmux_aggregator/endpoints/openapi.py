"""The answer to a request for documents, given a Snapshot: the HTTP contract in one place. Pure.

``decide`` returns one of three: a complete answer (``PreparedAnswer``), a document whose bytes have to be
found first (``Deliver``, completed by ``deliver``), or an unknown hash, about which the owner should be
asked once before the client is redirected (``Revalidate``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from specmux_aggregator.endpoints.not_found import ROUTE_DOCUMENT, ROUTE_ROOT, answer_unknown, possible_owners
from specmux_aggregator.http.dictionaries import accepts_dcz, use_as_dictionary
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.negotiation import MEDIA_TYPES, apply_profile, coding_for, media_type_for
from specmux_aggregator.http.prepared_answer import (
    FORMATS,
    NO_STORE,
    CacheStatus,
    PreparedAnswer,
    Representation,
    evaluate_preconditions,
    method_not_allowed,
    not_acceptable,
    prepare,
    status_reply,
)
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.document_urls import REDIRECTED, ROOT_PATH
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import FORMS, JSON, MediaType

DOCUMENT_PREFIX: Final = "/openapi/v3/"

ROOT_MEDIA_TYPES: Final = tuple(form.media_type for form in FORMS.values() if form.is_of_roots)
"""The root is not an OpenAPI document: gnostic's Protobuf has no message for it."""


HASH_PARAMETERS: Final = ("hash", "etag")
"""The parameter names of Kubernetes and of KEP-2896."""

HASH_MAX: Final = 256
"""Characters; the longest published hash has 128."""


@dataclass(frozen=True, slots=True)
class AskedHash:
    """The hash in a query, and the name of its parameter."""

    hash: Hash
    parameter: str
    index: int
    """Its position among the ``&``-separated parts."""
    is_redirected: bool = False
    """Whether a replica redirected the client here for this hash."""


class BadQuery(ValueError):
    """The hash is empty, overlong or repeated; the message is for the client."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """A document in one form; ``key`` finds its bytes."""

    key: DocumentKey
    media_type: MediaType
    representation: Representation


@dataclass(frozen=True, slots=True)
class Revalidate:
    """The requested hash is not the published one; its owners may already have it."""

    owners: tuple[BackendName, ...]
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
    has_dictionaries: bool = False,
) -> Decision | None:
    """The decision; None for a path outside ``/openapi/v3``.

    ``offered``: media types in which a document exists (it may have no Protobuf form). ``vouched_until``:
    monotonic seconds until which a published hash counts as the backend's own; None: not at all, so another
    hash leads to ``Revalidate``. ``is_checked``: whether the backend was asked after the request arrived.
    ``is_private``: access is restricted, so no shared cache may store the answer. ``has_dictionaries``:
    whether clients may use the documents that they have to decompress newer ones.
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
    try:
        asked = asked_hash(request.query)
    except BadQuery as error:
        return status_reply(400, str(error), route=ROUTE_DOCUMENT, request=request)
    if entry is None:
        owners = () if asked is None or is_checked else possible_owners(snapshot, group_version)
        if owners:
            return Revalidate(owners, is_unknown=True)
        return answer_unknown(snapshot, group_version, request, has_hash=asked is not None)
    is_stale = snapshot.observations[entry.owner].failure is not None
    is_current = asked is not None and asked.hash == entry.offer.hash
    if asked is not None and not is_current:
        until = vouched_until(entry.owner)
        if until is None:
            return Revalidate((entry.owner,))
        if not asked.is_redirected:
            return _redirect(request, asked, entry.key, until, is_stale=is_stale)
        # Another replica has, or had, that hash; redirected there, the client might come back. Answer with
        # the current document, as without a hash.
    media_types = offered(entry.key)
    media_type = apply_profile(media_type_for(request.accept, media_types), request.accept)
    if media_type is None:
        return not_acceptable(media_types, request, route=ROUTE_DOCUMENT)
    return _represent(
        request,
        entry.key,
        media_type,
        is_immutable=is_current,
        is_private=is_private,
        is_stale=is_stale,
        is_checked=is_checked,
        route=ROUTE_DOCUMENT,
        losses=entry.offer.losses,
        has_dictionaries=has_dictionaries,
    )


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
    is_checked: bool = False,
    losses: int = 0,
    has_dictionaries: bool = False,
) -> Decision:
    coding = coding_for(request.accept_encoding)
    held = CacheStatus.STALE if is_stale else CacheStatus.HIT
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
        cache_status=CacheStatus.ASKED if is_checked else held,
        # Tell clients about constructs that conversion lost.
        fields=(("Specmux-Losses", str(losses)),) if losses else (),
        # Only what is fresh may be a dictionary (RFC 9842 2.2.1), and without its hash a document never is.
        use_as_dictionary=(
            use_as_dictionary(request.path, key.hash) if has_dictionaries and is_immutable else ""
        ),
        varies_by_dictionary=has_dictionaries and accepts_dcz(request.accept_encoding),
    )
    return evaluate_preconditions(representation, request) or Deliver(key, media_type, representation)


def _redirect(
    request: Request, asked: AskedHash, key: DocumentKey, vouched_until: float, *, is_stale: bool
) -> PreparedAnswer:
    # Relative, so that it works behind any path prefix (k/k#117463). Not stored: if a backend returns to an
    # earlier document, a cache would hold two redirects pointing at each other.
    location = "?" + with_hash(request.query, asked, key.hash)
    answer = prepare(301, [("Location", location), NO_STORE], route=ROUTE_DOCUMENT)
    return replace(answer, is_stale=is_stale, good_until=vouched_until)


def asked_hash(query: str) -> AskedHash | None:
    """The hash in the query; None if there is none.

    Raises BadQuery for an empty, an overlong or a repeated one: a cache in front could read it differently.
    """
    found: AskedHash | None = None
    if not query:
        return None
    is_redirected = False
    for index, part in enumerate(query.split("&")):
        name, _, value = part.partition("=")
        name = unquote(name) if "%" in name else name
        if name not in HASH_PARAMETERS:
            is_redirected |= name == REDIRECTED
            continue
        if found is not None:
            raise BadQuery("the query names more than one hash")
        value = unquote(value) if "%" in value else value
        if not value:
            raise BadQuery(f'the query parameter "{name}" is empty')
        if len(value) > HASH_MAX:
            raise BadQuery(f'the query parameter "{name}" is longer than {HASH_MAX} characters')
        found = AskedHash(Hash(value), name, index)
    return replace(found, is_redirected=True) if found is not None and is_redirected else found


def with_hash(query: str, asked: AskedHash, current: Hash) -> str:
    """The query with the current hash in place of the requested one, the redirect mark, and everything else
    unchanged."""
    parts = query.split("&")
    parts[asked.index] = f"{asked.parameter}={current}"
    return "&".join((*parts, f"{REDIRECTED}=1"))

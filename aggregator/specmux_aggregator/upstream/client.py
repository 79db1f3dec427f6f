"""Requests to one backend over HTTP. Its errors become Failures here; redirects are never followed.

Requests carry what this backend's configuration says, and a client's ``traceparent`` if it is valid: no other
header of a client can enter.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding, ETag
from specmux_aggregator.http.trace_context import FIELD, current_parent
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.document_urls import (
    REDIRECTED,
    ROOT_PATH,
    SWAGGER_PATH,
    ForeignURL,
    base_path,
    document_path,
    hash_in,
)
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.body_budget import BODIES, BodyBudget, Share
from specmux_aggregator.upstream.connections.addresses import Address
from specmux_aggregator.upstream.connections.direct import UnreadAnswer
from specmux_aggregator.upstream.credentials import Identities, Unusable
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS, failure_of
from specmux_aggregator.upstream.responses import (
    INLINE_MAX,
    Answer,
    NotModified,
    Payload,
    Redirect,
    read_answer,
    too_large,
)
from specmux_aggregator.upstream.transport import CLOSED, BackendTransport
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion, key_fault
from specmux_converters.json_text import may_have_more_values
from specmux_converters.json_values import mapping
from specmux_converters.media_types import JSON

# A root is accepted as a whole or not at all: a server with one invalid entry is not trusted for the
# others.

ROOT_VALUES: Final = 100_000
VALUES_OF_ONE: Final = 8
"""JSON values of a root that are parsed, beside its paths and per path."""


@dataclass(frozen=True, slots=True)
class BackendRoot:
    """The documents that a backend offers and may publish, with the backend's hashes where it has them."""

    offers: Mapping[GroupVersion, Hash | None]
    etag: ETag | None
    """The entity tag of the representation, for the next conditional request."""
    ignored: tuple[str, ...]
    """Keys that the backend lists but may not publish, sorted and limited."""

    def of(self, backend: Backend) -> BackendRoot:
        """What the backend may publish as its cluster says now."""
        offers = {key: hash for key, hash in self.offers.items() if backend.owns(key)}
        if len(offers) == len(self.offers):
            return self
        others = map(cut, self.offers.keys() - offers.keys())
        return replace(self, offers=MappingProxyType(offers), ignored=tuple(sorted((*self.ignored, *others))))


class _RootRefusal(ValueError):
    """The root is invalid; the message is for people."""


def parse_root(
    body: bytes, backend: Backend, *, etag: ETag | None, max_group_versions: int
) -> BackendRoot | Failure:
    """Parse ``body`` (decoded JSON). Fails with BAD_BODY if it is not JSON, and BAD_ROOT if it is not a
    root. What the cluster says of the backend may change before the root does: see ``BackendRoot.of``."""
    if may_have_more_values(body, ROOT_VALUES + VALUES_OF_ONE * max_group_versions):
        return Failure(Cause.TOO_LARGE, f"the root has more values than {max_group_versions} paths can have")
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return Failure(Cause.BAD_BODY, f"the root is not JSON: {error.msg} at byte {error.pos}")
    try:
        paths = _paths(tree, max_group_versions)
        wanted = replace(backend, found=None)
        owned = {GroupVersion(key): entry for key, entry in paths.items() if wanted.owns(GroupVersion(key))}
        prefix = base_path(backend)
        offers = {}
        for key, entry in owned.items():
            try:
                offers[key] = _offered_hash(key, entry, prefix)
            except _RootRefusal:
                if backend.owns(key):
                    raise
    except _RootRefusal as refused:
        return Failure(Cause.BAD_ROOT, str(refused))
    ignored = tuple(sorted(cut(key) for key in paths.keys() - offers.keys()))
    return BackendRoot(MappingProxyType(offers), etag, ignored)


def _paths(tree: Any, max_group_versions: int) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise _RootRefusal("the root is not a JSON object")
    paths = tree.get("paths")
    if not isinstance(paths, dict):
        raise _RootRefusal('the root has no object "paths"')
    if len(paths) > max_group_versions:
        raise _RootRefusal(f"the root lists {len(paths)} paths, more than the {max_group_versions} allowed")
    return paths


def _offered_hash(key: GroupVersion, entry: Any, prefix: str) -> Hash | None:
    fault = key_fault(key)
    if fault is not None:
        raise _RootRefusal(f'the key "{cut(key)}" {fault}')
    url = mapping(entry).get("serverRelativeURL")
    if not isinstance(url, str):
        raise _RootRefusal(f'the key "{cut(key)}" has no string "serverRelativeURL"')
    try:
        return hash_in(url, key, base_path=prefix)
    except ForeignURL as foreign:
        raise _RootRefusal(f'the URL of the key "{cut(key)}" {foreign}') from foreign


__all__ = ["BackendClient", "BackendRoot", "MovedDocument", "NotModified", "Payload"]

SWAGGER_ACCEPT: Final = f"{JSON}, application/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.5"
"""With "@", the spelling that every release of Kubernetes understands."""

CONCURRENT_DOCUMENTS: Final = 8
"""Documents fetched from one backend at a time. Roots do not count: a poll waits for no document."""

DISCOVERY_TIMEOUT: Final = 5.0
"""Most seconds for one answer of discovery."""


@dataclass(frozen=True, slots=True)
class MovedDocument:
    """The backend now has the document under another hash."""

    hash: Hash | None


class BackendClient:
    """Sends requests to one backend. Lives on one event loop until ``close``."""

    def __init__(
        self,
        backend: Backend,
        *,
        polling: PollingSettings,
        limits: LimitSettings,
        identities: Identities | None = None,
        bodies: BodyBudget | None = None,
        address: Address | None = None,
    ) -> None:
        """``identities`` and ``address``: as in BackendTransport. ``bodies``: shared with the clients of
        other backends."""
        self._backend = backend
        self._polling = polling
        self._of_discovery = replace(
            polling,
            total_timeout=min(DISCOVERY_TIMEOUT, polling.total_timeout),
            idle_timeout=min(DISCOVERY_TIMEOUT, polling.idle_timeout),
        )
        self._limits = limits
        self._base_path = base_path(backend)
        self._transport = BackendTransport(backend, polling=polling, identities=identities, address=address)
        self._slots = asyncio.Semaphore(CONCURRENT_DOCUMENTS)
        self._bodies = BodyBudget(BODIES * limits.max_document_bytes) if bodies is None else bodies

    async def root(self, *, etag: str | None = None) -> BackendRoot | NotModified | Failure:
        """The documents that the backend offers at ``/openapi/v3``."""
        answer = await self._get(ROOT_PATH, JSON, max_bytes=self._limits.max_root_bytes, etag=etag)
        match answer:
            case Payload() if len(answer.body) <= INLINE_MAX and answer.coding is Coding.IDENTITY:
                return self._parse_root(answer)
            case Payload():
                return await asyncio.to_thread(self._parse_root, answer)
            case Redirect():
                return _refuse_redirect(answer)
            case _:
                return answer

    async def swagger(self, *, etag: str | None = None) -> Payload | NotModified | Failure:
        """The Swagger 2.0 document at ``/openapi/v2``: JSON, or Protobuf if a backend has nothing else."""
        answer = await self._get(
            SWAGGER_PATH, SWAGGER_ACCEPT, max_bytes=self._limits.max_document_bytes, etag=etag
        )
        return _refuse_redirect(answer) if isinstance(answer, Redirect) else answer

    async def document(
        self,
        group_version: GroupVersion,
        *,
        hash: Hash | None,
        accept_gzip: bool,
        etag: str | None = None,
    ) -> Payload | MovedDocument | NotModified | Failure:
        """A document as JSON. The caller checks that it is JSON and matches the hash."""
        answer = await self._get(
            document_path(group_version, hash),
            JSON,
            max_bytes=self._limits.max_document_bytes,
            etag=etag,
            accept_gzip=accept_gzip,
            slots=self._slots,
        )
        if isinstance(answer, Redirect):
            return _parse_moved(answer, group_version, asked=hash, base_path=self._base_path)
        return answer

    async def review(self, path: str, review: bytes, *, max_bytes: int) -> bytes | Failure:
        """The backend's answer to a review (authentication.k8s.io, authorization.k8s.io): an object that is
        created to be answered and is not stored, so it can be sent again."""
        answer = await self._get(path, JSON, max_bytes=max_bytes, etag=None, accept_gzip=False, review=review)
        match answer:
            case Failure(cause=Cause.RESET):  # an idle connection that closed as it was reused
                answer = await self._get(
                    path, JSON, max_bytes=max_bytes, etag=None, accept_gzip=False, review=review
                )
        match answer:
            case Payload(coding=Coding.IDENTITY):
                return answer.body
            case Redirect():
                return _refuse_redirect(answer)
            case Failure():
                return answer
            case _:
                return Failure(Cause.BAD_BODY, "the review's answer is in a coding that was not asked for")

    async def discovery(
        self, path: str, accept: str, *, etag: str | None = None
    ) -> Payload | NotModified | Failure:
        """A document of the backend's discovery (``/api``, ``/apis`` and below, ``/version``)."""
        answer = await self._get(
            path,
            accept,
            max_bytes=self._limits.max_root_bytes,
            etag=etag,
            slots=self._slots,
            polling=self._of_discovery,
        )
        return _refuse_redirect(answer) if isinstance(answer, Redirect) else answer

    async def close(self) -> None:
        """Close every connection. Running and later requests fail."""
        await self._transport.close()

    async def _get(
        self,
        target: str,
        accept: str,
        *,
        max_bytes: int,
        etag: str | None,
        accept_gzip: bool = True,
        slots: asyncio.Semaphore | None = None,
        review: bytes | None = None,
        polling: PollingSettings | None = None,
    ) -> Answer:
        polling = polling or self._polling
        fields = {"Accept": accept, "Accept-Encoding": "gzip" if accept_gzip else "identity"}
        if etag is not None:
            fields["If-None-Match"] = etag
        parent = current_parent()
        if parent is not None:
            fields[FIELD] = parent
        try:
            async with (
                asyncio.timeout(polling.total_timeout) as deadline,
                slots or contextlib.nullcontext(),
                self._ask(target, fields, review, polling) as response,
            ):
                return await read_answer(
                    response,
                    max_bytes=max_bytes,
                    is_conditional=etag is not None,
                    room=partial(self._room, deadline),
                )
        except Unusable as unusable:
            return unusable.failure
        except TRANSPORT_ERRORS as error:
            return CLOSED if self._transport.is_closed else failure_of(error, polling)

    def _ask(
        self, target: str, fields: Mapping[str, str], review: bytes | None, polling: PollingSettings
    ) -> AbstractAsyncContextManager[UnreadAnswer]:
        if review is None:
            return self._transport.ask(target, fields=fields, idle_timeout=polling.idle_timeout)
        return self._transport.request(
            "POST",
            target,
            fields={**fields, "Content-Type": JSON},
            body=review,
            idle_timeout=polling.idle_timeout,
        )

    async def _room(self, deadline: asyncio.Timeout, size: int) -> Share:
        """Room for a body. Waiting for others does not count towards the backend's deadline."""
        loop = asyncio.get_running_loop()
        left = (deadline.when() or loop.time()) - loop.time()
        deadline.reschedule(loop.time() + self._polling.total_timeout)
        share = await self._bodies.take(self._backend.name, size)
        deadline.reschedule(loop.time() + left)
        return share

    def _parse_root(self, payload: Payload) -> BackendRoot | Failure:
        try:
            body = decode_body(payload.body, payload.coding, max_bytes=self._limits.max_root_bytes)
        except TooLarge:
            return too_large(self._limits.max_root_bytes)
        except BadCoding as error:
            return Failure(Cause.TRUNCATED, str(error))
        return parse_root(
            body, self._backend, etag=payload.etag, max_group_versions=self._limits.max_group_versions
        )


def _parse_moved(
    redirect: Redirect, group_version: GroupVersion, *, asked: Hash | None, base_path: str
) -> MovedDocument | Failure:
    location = redirect.location.removesuffix(f"&{REDIRECTED}=1")  # the backend is a specmux
    if location.startswith("?"):
        location = document_path(group_version, None) + location
    try:
        current = hash_in(location, group_version, base_path=base_path)
    except ForeignURL:
        return _refuse_redirect(redirect)
    # A redirect to the same URL would loop.
    return MovedDocument(current) if current != asked else _refuse_redirect(redirect)


def _refuse_redirect(redirect: Redirect) -> Failure:
    # Report only the host of the location: the rest may contain a password, or the token of a login page.
    try:
        host = urlsplit(redirect.location).hostname
    except ValueError:
        host = None
    target = f"to the host {cut(host)}" if host else "to something else than another hash of the document"
    return Failure(Cause.REDIRECTED, f"answered {redirect.status}, a redirect {target}")


@contextlib.asynccontextmanager
async def fresh_client(connect: Callable[[], BackendClient]) -> AsyncIterator[BackendClient]:
    """A client of its own, closed afterwards: a balancer may connect it to another server."""
    client = connect()
    try:
        yield client
    finally:
        await client.close()

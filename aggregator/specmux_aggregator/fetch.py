"""One backend over HTTP. Its errors end here, as Failures; redirects are never followed.

What a request carries comes from the configuration of this one backend: no client's header can get into it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import aiohttp
import orjson

from specmux_aggregator.answer_fields import UnaskedCoding, coding, entity_tag, media_type, retry_after
from specmux_aggregator.backend_root import Root, parse_root
from specmux_aggregator.content_codings import BadCoding, TooLarge, decoded
from specmux_aggregator.credentials import Unusable
from specmux_aggregator.document_url import (
    ROOT_PATH,
    SWAGGER_PATH,
    ForeignURL,
    base_path,
    document_path,
    hash_in,
)
from specmux_aggregator.model import Backend, Cause, Coding, ETag, Failure, Hash
from specmux_aggregator.settings import Limits, Polling
from specmux_aggregator.transport import CLOSED, Transport
from specmux_aggregator.transport_failures import TRANSPORT_ERRORS, failure_of
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

__all__ = ["BackendClient", "Moved", "NotModified", "Payload", "Root"]

SWAGGER_ACCEPT: Final = f"{JSON}, application/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.5"
"""The spelling with "@": the one that every release of Kubernetes understands."""

CONCURRENT_DOCUMENTS: Final = 8
"""Documents fetched from one backend at a time. Roots have no share in this: a poll waits for no document."""

INLINE_MAX: Final = 64 * 1024
"""Bytes that are parsed on the event loop; more, or compressed ones, go to a thread."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The body of a 200, complete as far as HTTP's framing can tell."""

    body: bytes
    """As transferred: still in ``coding``."""
    coding: Coding
    """Identity or gzip: no other is asked for."""
    media_type: str
    """Type and subtype in lower case, without parameters; "" where the backend named none."""
    etag: ETag | None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The representation with the entity tag that was sent is still the current one."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The backend has the document under another hash now."""

    hash: Hash | None


@dataclass(frozen=True, slots=True)
class _Redirect:
    status: int
    location: str


_Answer: TypeAlias = Payload | NotModified | _Redirect | Failure


class BackendClient:
    """Asks one backend. Lives on one event loop, which owns it until ``close``."""

    def __init__(self, backend: Backend, *, polling: Polling, limits: Limits) -> None:
        self._backend = backend
        self._polling = polling
        self._limits = limits
        self._base_path = base_path(backend)
        self._transport = Transport(backend, polling=polling)
        self._slots = asyncio.Semaphore(CONCURRENT_DOCUMENTS)

    async def root(self, *, etag: str | None = None) -> Root | NotModified | Failure:
        """What the backend offers at ``/openapi/v3``."""
        answer = await self._get(ROOT_PATH, JSON, max_bytes=self._limits.max_root_bytes, etag=etag)
        match answer:
            case Payload() if len(answer.body) <= INLINE_MAX and answer.coding is Coding.IDENTITY:
                return self._parsed(answer)
            case Payload():
                return await asyncio.to_thread(self._parsed, answer)
            case _Redirect():
                return _redirected(answer)
            case _:
                return answer

    async def swagger(self, *, etag: str | None = None) -> Payload | NotModified | Failure:
        """The Swagger 2.0 document at ``/openapi/v2``: JSON, or Protobuf where a backend has nothing else."""
        answer = await self._get(
            SWAGGER_PATH, SWAGGER_ACCEPT, max_bytes=self._limits.max_document_bytes, etag=etag
        )
        return _redirected(answer) if isinstance(answer, _Redirect) else answer

    async def document(
        self,
        group_version: GroupVersion,
        *,
        hash: Hash | None,
        accept_gzip: bool,
        etag: str | None = None,
    ) -> Payload | Moved | NotModified | Failure:
        """One document as JSON. That it is JSON, and the one with this hash, is for the caller to check."""
        answer = await self._get(
            document_path(group_version, hash),
            JSON,
            max_bytes=self._limits.max_document_bytes,
            etag=etag,
            accept_gzip=accept_gzip,
            slots=self._slots,
        )
        if isinstance(answer, _Redirect):
            return _moved(answer, group_version, asked=hash, base_path=self._base_path)
        return answer

    async def review(self, path: str, review: bytes, *, max_bytes: int) -> bytes | Failure:
        """What the backend makes of a review (authentication.k8s.io, authorization.k8s.io): an object that is
        created to be answered and not kept, so that it can be sent again."""
        answer = await self._get(path, JSON, max_bytes=max_bytes, etag=None, accept_gzip=False, review=review)
        match answer:
            case Failure(cause=Cause.RESET):  # an idle connection that was closed as it was taken up
                answer = await self._get(
                    path, JSON, max_bytes=max_bytes, etag=None, accept_gzip=False, review=review
                )
        match answer:
            case Payload(coding=Coding.IDENTITY):
                return answer.body
            case _Redirect():
                return _redirected(answer)
            case Failure():
                return answer
            case _:
                return Failure(Cause.BAD_BODY, "the review's answer is in a coding that was not asked for")

    async def close(self) -> None:
        """Close every connection. What is still being asked for fails; so does everything asked later."""
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
    ) -> _Answer:
        fields = {"Accept": accept, "Accept-Encoding": "gzip" if accept_gzip else "identity"}
        if etag is not None:
            fields["If-None-Match"] = etag
        if review is not None:
            fields["Content-Type"] = JSON
        try:
            async with (
                asyncio.timeout(self._polling.total_timeout),
                slots or contextlib.nullcontext(),
                self._transport.request(
                    "GET" if review is None else "POST", target, fields=fields, body=review
                ) as response,
            ):
                return await _answer(response, max_bytes=max_bytes, is_conditional=etag is not None)
        except Unusable as unusable:
            return unusable.failure
        except TRANSPORT_ERRORS as error:
            return CLOSED if self._transport.is_closed else failure_of(error, self._polling)

    def _parsed(self, payload: Payload) -> Root | Failure:
        try:
            body = decoded(payload.body, payload.coding, max_bytes=self._limits.max_root_bytes)
        except TooLarge:
            return _too_large(self._limits.max_root_bytes)
        except BadCoding as error:
            return Failure(Cause.TRUNCATED, str(error))
        return parse_root(
            body, self._backend, etag=payload.etag, max_group_versions=self._limits.max_group_versions
        )


async def _answer(response: aiohttp.ClientResponse, *, max_bytes: int, is_conditional: bool) -> _Answer:
    status = response.status
    if status == 304 and is_conditional:
        return NotModified()
    if status in (301, 302, 307, 308):
        return _Redirect(status, response.headers.get("Location", ""))
    if status != 200 and (status != 201 or response.method != "POST"):
        return _status_failure(status, retry_after(response.headers.get("Retry-After"), now=time.time()))
    try:
        applied = coding(", ".join(response.headers.getall("Content-Encoding", ())))
    except UnaskedCoding as unasked:
        return Failure(Cause.BAD_BODY, str(unasked))
    body = await _body(response, max_bytes)
    if isinstance(body, Failure):
        return body
    if applied is Coding.IDENTITY and not _is_framed(response) and not await _is_json(body):
        return Failure(Cause.TRUNCATED, "the body ends with the connection, and is not whole")
    return Payload(
        body,
        applied,
        media_type(response.headers.get("Content-Type", "")),
        entity_tag(response.headers.get("ETag")),
    )


async def _body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | Failure:
    if response.content_length is not None and response.content_length > max_bytes:
        return _too_large(max_bytes)
    body = io.BytesIO()  # its getvalue() does not copy, and a body that drips in costs no object per byte
    async for chunk in response.content.iter_any():
        if body.tell() + len(chunk) > max_bytes:
            return _too_large(max_bytes)
        body.write(chunk)
    return body.getvalue()


def _is_framed(response: aiohttp.ClientResponse) -> bool:
    """HTTP shows where the body ends (RFC 9112 6.3); else the connection's end does, be it whole or cut."""
    return response.content_length is not None or "Transfer-Encoding" in response.headers


async def _is_json(body: bytes) -> bool:
    try:
        if len(body) <= INLINE_MAX:
            orjson.loads(body)
        else:
            await asyncio.to_thread(orjson.loads, body)
    except orjson.JSONDecodeError:
        return False
    return True


def _too_large(max_bytes: int) -> Failure:
    return Failure(Cause.TOO_LARGE, f"the body is larger than the {max_bytes} bytes allowed")


def _status_failure(status: int, wait: float | None) -> Failure:
    detail = f"answered {status}"
    if status in (401, 403):
        return Failure(Cause.CREDENTIALS, detail)
    if status == 404:
        return Failure(Cause.NOT_FOUND, detail)
    if status == 406:
        return Failure(Cause.NOT_ACCEPTABLE, detail)
    if status == 429 or (status == 503 and wait is not None):
        return Failure(Cause.THROTTLED, detail, wait)
    if 500 <= status <= 599:
        return Failure(Cause.SERVER_ERROR, detail, wait)
    if 300 <= status <= 399 and status != 304:
        return Failure(Cause.REDIRECTED, detail)
    return Failure(Cause.UNEXPECTED_STATUS, detail)


def _moved(
    redirect: _Redirect, group_version: GroupVersion, *, asked: Hash | None, base_path: str
) -> Moved | Failure:
    location = redirect.location
    if location.startswith("?"):
        location = document_path(group_version, None) + location
    try:
        current = hash_in(location, group_version, base_path=base_path)
    except ForeignURL:
        return _redirected(redirect)
    # A redirect to what was asked for would be followed for ever.
    return Moved(current) if current != asked else _redirected(redirect)


def _redirected(redirect: _Redirect) -> Failure:
    # Of the location only the host is told: the rest may hold a password, or the token of a login page.
    try:
        host = urlsplit(redirect.location).hostname
    except ValueError:
        host = None
    target = f"to the host {cut(host)}" if host else "to something else than another hash of the document"
    return Failure(Cause.REDIRECTED, f"answered {redirect.status}, a redirect {target}")

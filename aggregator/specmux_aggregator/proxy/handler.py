"""Requests that a backend answers itself: /openapi/v2 always, resources if ``proxy.resources`` is on.

They differ in credentials. /openapi/v2 is requested with this service's own credentials, as is all discovery.
A resource is requested with the client's credentials and none of this service's.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.http.negotiation import SWAGGER_MEDIA_TYPES, media_type_for
from specmux_aggregator.http.prepared_answer import PreparedAnswer, cache_control, refusal
from specmux_aggregator.http.response_fields import status_failure
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_aggregator.model.failure import OUT_OF_REACH, Cause, Failure
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.proxy import header_fields
from specmux_aggregator.proxy.exchanges import Exchanges, ProxyExchange
from specmux_aggregator.proxy.header_fields import Field
from specmux_aggregator.proxy.response import ProxiedResponse
from specmux_aggregator.proxy.routes import (
    apiserver_in,
    group_version_of,
    is_apiserver_page,
    is_relayed,
    is_swagger,
    owner_of,
    swagger_candidates,
    target_fault,
)
from specmux_aggregator.proxy.swagger_copies import SwaggerBody, SwaggerCopies
from specmux_aggregator.proxy.upload import Upload
from specmux_aggregator.server.dispatch import CROWDED, CROWDED_HEAD, request_of, target_of
from specmux_aggregator.server.protocols import Guard, Reply, Response, WireRequest
from specmux_aggregator.upstream.credentials import Identities
from specmux_aggregator.upstream.responses import too_large

ROUTE: Final = "proxied"

NEVER_ASKED: Final = frozenset(
    {Cause.REFUSED, Cause.UNRESOLVED, Cause.BAD_TLS, Cause.CREDENTIALS, Cause.UNREADABLE}
)
"""Causes that show that a backend has not begun to process the request."""

PASSING: Final = OUT_OF_REACH | {Cause.SERVER_ERROR, Cause.THROTTLED}
"""Causes that pass without a change of either side."""

WITHOUT_SECONDS: Final = 10.0
"""Seconds for which a backend that has no Swagger 2.0 document is not asked for it again."""

NO_UPGRADE: Final = (
    "connections are not upgraded here (WebSocket, SPDY): exec, attach, port-forward and the like need the"
    " address of the apiserver itself"
)
NO_CERTIFICATE: Final = (
    "requests for resources are not passed on where clients are known by their certificates: a backend would"
    " not see whose they are; ask the apiserver itself"
)


class _Place:
    """A counted place for one request."""

    def __init__(self, name: BackendName, among: Counter[BackendName]) -> None:
        self._name = name
        self._among = among
        among[name] += 1

    def move(self, among: Counter[BackendName]) -> None:
        self.leave()
        self._among = among
        among[self._name] += 1

    def leave(self) -> None:
        self._among[self._name] -= 1
        if not self._among[self._name]:
            del self._among[self._name]  # remove zero counts: backends come and go


class ProxyHandler:
    """Implements the server's ``StreamingHandler`` protocol. Lives on one event loop until ``close``."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        metrics: Metrics,
        settings: Settings,
        identities: Identities,
    ) -> None:
        self._snapshot = snapshot
        self._metrics = metrics
        self._proxy = settings.proxy
        self._passes_swagger = settings.documents.openapi_v2 == "passthrough"
        self._limits = settings.limits
        self._clients_have_certificates = settings.auth.mode == "mtls"
        """Clients authenticate to this service by certificate, which a backend never sees."""
        self._is_private = settings.auth.is_private
        self._max_waiting = settings.listen.max_in_flight
        """Requests that may wait for one backend, so that a silent one blocks no others; 0: unlimited."""
        self._waiting: Counter[BackendName] = Counter()
        self._uploading: Counter[BackendName] = Counter()
        """Requests whose body is incomplete; they do not count as waiting."""
        self._exchanges = Exchanges(snapshot, metrics, polling=settings.polling, identities=identities)
        self.guard: Guard | None = None
        """Admits clients; set after construction, since it calls ``asks_as_the_client``."""
        self._copies = SwaggerCopies(
            max_bytes=settings.limits.max_document_bytes, is_private=self._is_private, route=ROUTE
        )
        self._without_swagger: dict[BackendName, tuple[str, float]] = {}
        """Backends that answered 404 when they were last asked: under which URL, and until when they are not
        asked again."""

    def claims(self, message: RawRequestMessage) -> bool:
        target = target_of(message)
        if is_swagger(target):
            return self._passes_swagger and message.method in ("GET", "HEAD")
        return self._proxy.resources and is_relayed(target)

    def asks_as_the_client(self, message: RawRequestMessage) -> bool:
        """Whether a backend receives the client's own credentials and decides by them."""
        return self._proxy.resources and is_relayed(target_of(message))

    async def stream(self, request: WireRequest) -> Response | Reply:
        connection, target = request.connection, target_of(request.message)
        answer: ProxiedResponse | PreparedAnswer | None = self._refusal(request, target)
        if answer is None and is_swagger(target):
            headers = request.message.headers
            self._metrics.swagger_readers.count(headers.get("Accept"), headers.get("User-Agent"))
            answer = await self._swagger(request)
        elif answer is None:
            connection.streamed = request
            try:
                answer = await self._resource(request, target)
            finally:
                if not isinstance(answer, ProxiedResponse):
                    connection.end_streaming()
        if isinstance(answer, ProxiedResponse):
            return answer
        return Reply(answer, is_last=answer.status in (400, 408, 501) or None)

    async def close(self) -> None:
        """Close every connection to a backend."""
        await self._exchanges.close()

    def _refusal(self, request: WireRequest, target: str) -> PreparedAnswer | None:
        """Why a request goes to no backend, whichever it is."""
        message = request.message
        fields = list(message.headers.items())
        if (fault := target_fault(target)) is not None:
            return _status(request, 400, "BadRequest", fault)
        if header_fields.hops(fields) >= header_fields.HOPS_MAX:
            return _status(request, 508, "LoopDetected", "the request came through here before")
        if is_swagger(target):
            return None
        if request.connection.is_half_closed:
            return _status(request, 400, "BadRequest", "the connection was closed before there was an answer")
        if message.method in ("TRACE", "CONNECT"):
            return _status(request, 405, "MethodNotAllowed", f"{message.method} is not passed on")
        if header_fields.has_other_coding(fields):
            return _status(request, 501, "NotImplemented", "of transfer codings only chunked is passed on")
        if message.upgrade or header_fields.wants_upgrade(fields):
            return _status(request, 501, "NotImplemented", NO_UPGRADE)
        if self._clients_have_certificates:
            return _status(request, 501, "NotImplemented", NO_CERTIFICATE)
        return None

    async def _resource(self, request: WireRequest, target: str) -> ProxiedResponse | PreparedAnswer:
        message = request.message
        owner = self._owner(target)
        if owner is None:
            return _status(request, 404, "NotFound", "no backend serves this path, or its group and version")
        try:
            fields = header_fields.resource_fields(message.headers.items(), client=_address(request))
        except ValueError as error:
            return _status(request, 400, "BadRequest", str(error))
        if self._is_crowded(owner, self._uploading if request.has_body else self._waiting):
            return refuse_crowd(request)
        upload = None
        if request.has_body:
            upload = Upload(request, sent=self._metrics.proxy.bytes.labels(owner.name, "request").inc)
            if upload.length is not None:
                fields.append(("Content-Length", str(upload.length)))
        begun = await self._begin(owner, message.method, target, fields, upload, is_ours=False)
        if upload is not None and isinstance(begun, Failure):
            await upload.wait_for_stop()
            if upload.is_broken:
                return _status(request, 400, "BadRequest", "the body of the request is malformed")
            if upload.is_stalled and begun.cause is Cause.TIMEOUT:
                return _status(request, 408, "Timeout", "the body of the request did not come")
        if isinstance(begun, Failure):
            return self._answer_failure(request, owner, begun)
        return await self._pass_on(request, begun, upload, header_fields.answer_fields)

    def _owner(self, target: str) -> Backend | None:
        if is_apiserver_page(target):
            return apiserver_in(self._snapshot())
        group_version = group_version_of(target)
        return None if group_version is None else owner_of(self._snapshot(), group_version)

    async def _begin(
        self,
        owner: Backend,
        method: str,
        target: str,
        fields: Sequence[Field],
        upload: Upload | None,
        *,
        is_ours: bool,
    ) -> ProxyExchange | Failure:
        patience = self._proxy.answer_timeout
        place = _Place(owner.name, self._waiting if upload is None else self._uploading)
        try:
            async with asyncio.timeout(patience) as deadline:
                if upload is not None:
                    upload.answer_within(patience, deadline, whole=lambda: place.move(self._waiting))
                return await self._exchanges.begin(
                    owner,
                    method,
                    target,
                    fields,
                    is_ours=is_ours,
                    body=upload,
                    idle_timeout=None if is_ours else math.inf,
                )
        except TimeoutError:
            return Failure(Cause.TIMEOUT, f"no answer within {patience:g} s")
        finally:
            place.leave()
            if upload is not None:
                upload.note_answer()

    def _is_crowded(self, backend: Backend, others: Counter[BackendName]) -> bool:
        return 0 < self._max_waiting <= others[backend.name]

    async def _swagger(self, request: WireRequest) -> ProxiedResponse | PreparedAnswer:
        wanted = request.message.headers.get("Accept")
        if media_type_for(wanted, SWAGGER_MEDIA_TYPES) is None:
            # As in an apiserver: not found, whether or not a backend is reachable.
            return _status(request, 406, "NotAcceptable", f"offered: {', '.join(SWAGGER_MEDIA_TYPES)}")
        snapshot = self._snapshot()
        self._copies.keep_only(item.backend for item in snapshot.observations.values())
        lost: tuple[Backend, Failure] | None = None
        for backend in sorted(swagger_candidates(snapshot), key=self._is_without_swagger):
            failure = snapshot.observations[backend.name].failure
            if failure is not None and failure.cause in OUT_OF_REACH:
                copy = await self._copies.answer(backend, request_of(request.message))
                if copy is not None:
                    return copy  # as a document: not asked for in vain by each client
            if self._is_crowded(backend, self._waiting):
                return refuse_crowd(request)
            begun = await self._swagger_of(backend, request)
            if isinstance(begun, ProxyExchange):
                self._without_swagger.pop(backend.name, None)
                body = self._copies.body_of(backend, request.message.method, begun.answer)
                return await self._pass_on(request, begun, None, self._swagger_answer_fields, body=body)
            if begun.cause is Cause.NOT_FOUND:
                self._without_swagger[backend.name] = (backend.url, time.monotonic() + WITHOUT_SECONDS)
                self._copies.forget(backend)
            elif begun.cause in OUT_OF_REACH and self._was_without_swagger(backend):
                lost = lost or (backend, begun)
            else:
                # It has the document, or may have it: another backend's would be a part of it.
                return await self._instead_of(backend, begun, request)
        if lost is not None:
            return self._answer_failure(request, *lost, is_read=True)
        return _status(request, 404, "NotFound", f"no backend has a document at {SWAGGER_PATH}")

    async def _instead_of(self, backend: Backend, failure: Failure, request: WireRequest) -> PreparedAnswer:
        """The answer where a backend's own document cannot be had: its last one, or an error."""
        if failure.cause is Cause.NOT_ACCEPTABLE:
            message = f"backend {backend.name} has {SWAGGER_PATH} in none of these forms"
            return _status(request, 406, "NotAcceptable", message)
        if failure.status == 508:
            return _status(request, 508, "LoopDetected", f"backend {backend.name} asked for it here")
        copy = await self._copies.answer(backend, request_of(request.message))
        if copy is not None:
            self._exchanges.count_failure(backend, failure, copy.status)
            return copy
        return self._answer_failure(request, backend, failure, is_read=True)

    def _is_without_swagger(self, backend: Backend) -> bool:
        url, until = self._without_swagger.get(backend.name, ("", 0.0))
        return url == backend.url and time.monotonic() < until

    def _was_without_swagger(self, backend: Backend) -> bool:
        return self._without_swagger.get(backend.name, ("", 0.0))[0] == backend.url

    def _swagger_answer_fields(self, raw: Iterable[tuple[bytes, bytes]]) -> list[Field]:
        passed = header_fields.swagger_answer_fields(raw)
        if not self._is_private:
            return passed
        return [
            *((name, value) for name, value in passed if name.lower() != "cache-control"),
            cache_control(is_immutable=False, is_private=True),
        ]

    async def _swagger_of(self, backend: Backend, request: WireRequest) -> ProxyExchange | Failure:
        message, max_bytes = request.message, self._limits.max_document_bytes
        fields = header_fields.swagger_fields(message.headers.items())
        begun = await self._begin(backend, message.method, SWAGGER_PATH, fields, None, is_ours=True)
        if isinstance(begun, Failure):
            return begun
        length = begun.answer.content_length
        if begun.answer.status not in (200, 304):
            failure = status_failure(begun.answer.status)
        elif length is not None and length > max_bytes:
            failure = too_large(max_bytes)
        else:
            return begun
        await begun.close()
        return failure

    async def _pass_on(
        self,
        request: WireRequest,
        begun: ProxyExchange,
        upload: Upload | None,
        fields_of_answer: Callable[[Iterable[tuple[bytes, bytes]]], list[Field]],
        *,
        body: SwaggerBody | None = None,
    ) -> ProxiedResponse | PreparedAnswer:
        """The answer for the client; an answer of this service where the backend's must not be passed on."""
        failure = _unfit(begun.answer.status)
        if failure is None:
            try:
                fields = fields_of_answer(begun.answer.raw_headers)
            except ValueError as error:
                failure = Failure(Cause.BAD_BODY, str(error))
        if failure is not None:
            await begun.close()
            if body is not None:
                await body.end(is_whole=False)
            return self._answer_failure(request, begun.backend, failure)
        self._exchanges.count_answer(begun.backend, begun.answer.status)
        return ProxiedResponse(
            begun,
            fields,
            request,
            self._exchanges,
            upload=upload,
            body=body,
            moved=self._metrics.proxy.bytes.labels(begun.backend.name, "answer").inc,
            guard=self.guard,
        )

    def _answer_failure(
        self, request: WireRequest, backend: Backend, failure: Failure, *, is_read: bool = False
    ) -> PreparedAnswer:
        """``is_read``: the request may be repeated even if the backend has begun it."""
        message = f"backend {backend.name} did not answer as it should ({failure.cause})"
        if failure.cause in NEVER_ASKED or (is_read and failure.cause in PASSING):
            # client-go retries by itself where an answer has Retry-After; never send it for a request that
            # the backend may have begun.
            prepared = _status(request, 503, "ServiceUnavailable", message, [("Retry-After", "1")])
        elif failure.cause is Cause.TIMEOUT:
            prepared = _status(request, 504, "Timeout", message)
        else:
            prepared = _status(request, 502, "BadGateway", message)
        self._exchanges.count_failure(backend, failure, prepared.status)
        return prepared


def refuse_crowd(request: WireRequest) -> PreparedAnswer:
    """The answer to a request beyond the limit."""
    request.connection.connections.stats.requests_refused += 1
    return CROWDED_HEAD if request.message.method == "HEAD" else CROWDED


def _unfit(status: int) -> Failure | None:
    """Why an answer with this status is not passed on."""
    if 300 <= status <= 399 and status != 304:
        # A client would follow the redirect, with its credentials, to any place the backend names
        # (CVE-2022-3172).
        return Failure(Cause.REDIRECTED, f"answered {status}, a redirect")
    return None if 200 <= status <= 599 else Failure(Cause.UNEXPECTED_STATUS, f"answered {status}")


def _address(request: WireRequest) -> str | None:
    peer = request.connection.peername
    return str(peer[0]) if isinstance(peer, tuple) else None


def _status(
    request: WireRequest, code: int, reason: str, message: str, fields: Iterable[Field] = ()
) -> PreparedAnswer:
    is_head = request.message.method == "HEAD"
    return refusal(code, reason, message, fields=fields, is_head=is_head, route=ROUTE)

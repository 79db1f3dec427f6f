"""A cluster for tests: what a kube-apiserver answers about its objects, over real HTTP(S) on loopback.

    async with FakeCluster() as cluster:
        cluster.put(CRDS, {"metadata": {"name": "widgets.example.com"}, "spec": {...}})   # create or replace
        cluster.put(API_SERVICES, api_service("metrics.k8s.io", "v1beta1", service=("metrics", "system")))
        cluster.delete(CRDS, "widgets.example.com")
        ... Backend(url=cluster.url, ...) or cluster.kubeconfig(folder)

Objects: any resource path ("/apis/GROUP/VERSION/PLURAL") listed in ``kinds`` can be listed (``limit``,
``continue``, resourceVersion; items without kind, as upstream) and watched (resourceVersion, timeoutSeconds,
bookmarks, initial ERROR 410 after ``compact``). ``put`` fills apiVersion, kind, uid, creationTimestamp and
resourceVersion; one version counter for the whole cluster, as etcd has it.

Faults, all changed while it runs:
    cluster.forbidden.add(CRDS)      403 Status for list and watch (``forbidden_verbs`` narrows it)
    cluster.absent.add(CRDS)         404
    cluster.compact()                what came before now is gone: 410 for older versions and continue tokens
    cluster.tokens = {"t2"}          others get 401; None (the default) asks for none
    cluster.watch_life = 1.0         every watch ends, properly, after this many seconds
    cluster.bookmark_interval = 0.1  seconds between bookmarks
    cluster.cut_watches()            drops every open watch in the middle of a line
    cluster.send_raw(CRDS, b"...")   bytes into every open watch of a resource
    cluster.answers["/path"] = fn    async fn(request) -> Response before anything else: for single faults

Reviews: ``review_token`` maps a token to the user's ``status`` of a TokenReview (None: not authenticated);
``allows`` decides a SubjectAccessReview from its spec. Both are plain functions; ``reviews`` counts.

OpenAPI: it is a FakeAPIServer, too: ``documents``, ``swagger_document``; ``pages`` maps further GET paths
("/apis", "/version") to bodies. ``requests`` has (method, path with query, headers) of all that came.

Client certificates: FakeCluster(tls=context) with an ssl.SSLContext; the peer's common name is in
``certificates``, one per request.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson
from aiohttp import web

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer
from fakes.listening import WebServer

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ENDPOINT_SLICES = "/apis/discovery.k8s.io/v1/endpointslices"

KINDS = {
    API_SERVICES: "APIService",
    CRDS: "CustomResourceDefinition",
    ENDPOINT_SLICES: "EndpointSlice",
}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]


@dataclass
class _Event:
    version: int
    type: str
    object: dict[str, Any]


@dataclass(eq=False)
class _OpenWatch:
    path: str
    task: asyncio.Task[Any]
    response: web.StreamResponse
    transport: asyncio.Transport
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class FakeCluster(FakeAPIServer):
    """One apiserver. Start it with ``async with``, or ``start`` and ``stop``, which keep the port."""

    def __init__(
        self,
        documents: dict[str, bytes] | None = None,
        swagger_document: bytes | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(documents, swagger_document)
        self.kinds = dict(KINDS)
        self.version = 1000
        self.compacted = 0
        self.tokens: set[str] | None = None
        self.forbidden: set[str] = set()
        self.forbidden_verbs = {"list", "watch"}
        self.absent: set[str] = set()
        self.watch_life: float | None = None
        self.bookmark_interval: float | None = 60.0
        self.pages: dict[str, bytes] = {}
        self.answers: dict[str, Answer] = {}
        self.review_token: Callable[[str], dict[str, Any] | None] = lambda token: None
        self.allows: Callable[[dict[str, Any]], bool] = lambda spec: False
        self.reviews: list[dict[str, Any]] = []
        self.review_parents: list[str | None] = []
        """The ``traceparent`` of each review."""
        self.requests: list[Seen] = []
        self.header_fields: list[list[tuple[str, str]]] = []
        """Of each request, as they came: a name may repeat."""
        self.certificates: list[str | None] = []
        self.page_limit: int | None = None
        """Objects in a page at most, whatever is asked for."""
        self._tls = tls
        self._objects: dict[str, dict[str, dict[str, Any]]] = {}
        self._events: dict[str, list[_Event]] = {}
        self._continued: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._watches: set[_OpenWatch] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        application = web.Application(middlewares=[self._before])
        application.router.add_get("/openapi/v3", self._root)
        application.router.add_get("/openapi/v2", self._swagger)
        application.router.add_get("/openapi/v3/{key:.+}", self._document)
        application.router.add_post(TOKEN_REVIEWS, self._token_review)
        application.router.add_post(ACCESS_REVIEWS, self._access_review)
        application.router.add_get("/{path:.*}", self._get)
        self._server = WebServer(application, tls=self._tls, shutdown_timeout=0.1)
        self._port = await self._server.start(self._port)
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        for watch in list(self._watches):
            watch.task.cancel()
        await super().stop()

    # Objects

    def put(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object; what is stored is given back."""
        held = self._objects.setdefault(path, {})
        name = _key(item)
        before = held.get(name)
        self.version += 1
        group_version = path.split("/apis/")[-1].rsplit("/", 1)[0] if "/apis/" in path else "v1"
        metadata = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "uid": before["metadata"]["uid"] if before else str(uuid.uuid4()),
            **item["metadata"],
            "resourceVersion": str(self.version),
        }
        stored = {"apiVersion": group_version, "kind": self.kinds[path], **item, "metadata": metadata}
        held[name] = stored
        self._happened(path, "MODIFIED" if before else "ADDED", stored)
        return stored

    def delete(self, path: str, name: str) -> None:
        """``name``: "namespace/name" where it has a namespace."""
        gone = self._objects[path].pop(name)
        self.version += 1
        last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._happened(path, "DELETED", last)

    def objects(self, path: str) -> dict[str, dict[str, Any]]:
        return dict(self._objects.get(path, {}))

    def compact(self) -> None:
        """Forget what led to now: older versions are 410 Gone."""
        self.version += 1
        self.compacted = self.version
        self._events.clear()
        self._continued.clear()

    # Faults of open watches

    def open_watches(self, path: str) -> int:
        return sum(watch.path == path for watch in self._watches)

    def cut_watches(self) -> None:
        for watch in list(self._watches):
            if not watch.transport.is_closing():
                watch.transport.write(b'20\r\n{"type": "MODIFIED"')
                watch.transport.close()

    async def send_raw(self, path: str, data: bytes) -> None:
        for watch in list(self._watches):
            if watch.path == path and not watch.transport.is_closing():
                await watch.response.write(data)

    async def until_watched(self, path: str) -> None:
        """Wait until somebody watches the resource."""
        async with asyncio.timeout(DEADLINE):
            while not self.open_watches(path):
                await asyncio.sleep(0.005)

    # Access

    def kubeconfig(self, folder: Path, *, cluster: dict[str, Any] | None = None, **user: Any) -> Path:
        """A kubeconfig for this server in ``folder``; ``user``: what stands in its user."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": self.url, **(cluster or {})}}],
            "users": [{"name": "fake", "user": user}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        }
        path = folder / "kubeconfig"
        path.write_bytes(orjson.dumps(config))
        return path

    def seen(self, prefix: str) -> list[Seen]:
        return [request for request in self.requests if request.target.startswith(prefix)]

    # Answers

    @web.middleware
    async def _before(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(Seen(request.method, request.path_qs, dict(request.headers)))
        self.header_fields.append(list(request.headers.items()))
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        self.certificates.append(_common_name(certificate))
        if self.tokens is not None:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme != "Bearer" or token not in self.tokens:
                return status(401, "Unauthorized")
        special = self.answers.get(request.path)
        answer = None if special is None else await special(request)
        return answer if answer is not None else await handler(request)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in self.pages:
            return web.Response(body=self.pages[path], content_type="application/json")
        if path not in self.kinds or path in self.absent:
            return status(404, "NotFound")
        is_watch = request.query.get("watch") in ("1", "true")
        if path in self.forbidden and ("watch" if is_watch else "list") in self.forbidden_verbs:
            return status(403, "Forbidden")
        return await self._watch(request, path) if is_watch else self._list(request, path)

    def _list(self, request: web.Request, path: str) -> web.Response:
        token = request.query.get("continue")
        if token is None:
            version, items = self.version, list(self._objects.get(path, {}).values())
        elif token in self._continued:
            version, items = self._continued[token]
        else:
            return status(410, "Expired")
        limit = int(request.query.get("limit", "0"))
        if self.page_limit is not None and limit:
            limit = min(limit, self.page_limit)
        metadata = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            metadata["continue"] = uuid.uuid4().hex
            metadata["remainingItemCount"] = len(items) - limit  # type: ignore[assignment] # as upstream
            self._continued[metadata["continue"]] = (version, items[limit:])
            items = items[:limit]
        listed = {
            "kind": f"{self.kinds[path]}List",
            "apiVersion": path.split("/apis/")[-1].rsplit("/", 1)[0],
            "metadata": metadata,
            "items": [
                {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}
                for item in items
            ],
        }
        return web.Response(body=orjson.dumps(listed), content_type="application/json")

    async def _watch(self, request: web.Request, path: str) -> web.StreamResponse:
        version = int(request.query.get("resourceVersion") or self.version)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        assert request.transport is not None
        watch = _OpenWatch(path, task, response, request.transport)
        self._watches.add(watch)
        life = float(request.query.get("timeoutSeconds", "1800"))
        life = life if self.watch_life is None else min(life, self.watch_life)
        wants_bookmarks = request.query.get("allowWatchBookmarks") in ("1", "true")
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(life):
                    await self._follow(watch, version, wants_bookmarks)
            await response.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._watches.discard(watch)
        return response

    async def _follow(self, watch: _OpenWatch, version: int, wants_bookmarks: bool) -> None:
        kind = self.kinds[watch.path]
        while True:
            if version < self.compacted:
                gone = orjson.loads(status(410, "Expired").body)  # type: ignore[arg-type]
                await _send(watch, {"type": "ERROR", "object": gone})
                return
            watch.wake.clear()
            for event in list(self._events.get(watch.path, ())):
                if event.version > version:
                    version = event.version
                    await _send(watch, {"type": event.type, "object": event.object})
            try:
                async with asyncio.timeout(self.bookmark_interval):
                    await watch.wake.wait()
            except TimeoutError:
                if wants_bookmarks and not watch.wake.is_set():  # else it would pass over an event
                    version = max(version, self.version)
                    mark = {"kind": kind, "metadata": {"resourceVersion": str(version)}}
                    await _send(watch, {"type": "BOOKMARK", "object": mark})

    def _happened(self, path: str, type: str, item: dict[str, Any]) -> None:
        self._events.setdefault(path, []).append(_Event(self.version, type, item))
        for watch in self._watches:
            if watch.path == path:
                watch.wake.set()

    async def _reviewed(self, request: web.Request) -> dict[str, Any]:
        review: dict[str, Any] = orjson.loads(await request.read())
        self.reviews.append(review)
        self.review_parents.append(request.headers.get("traceparent"))
        return review

    async def _token_review(self, request: web.Request) -> web.Response:
        review = await self._reviewed(request)
        user = self.review_token(review["spec"]["token"])
        review["status"] = {"authenticated": False} if user is None else {"authenticated": True, **user}
        review["spec"] = {}
        return web.Response(status=201, body=orjson.dumps(review), content_type="application/json")

    async def _access_review(self, request: web.Request) -> web.Response:
        review = await self._reviewed(request)
        review["status"] = {"allowed": self.allows(review["spec"])}
        return web.Response(status=201, body=orjson.dumps(review), content_type="application/json")


def api_service(
    group: str,
    version: str,
    *,
    service: tuple[str, str] | None = None,
    port: int = 443,
    available: bool = True,
    **spec: Any,
) -> dict[str, Any]:
    """An APIService; ``service``: name and namespace, None for what the apiserver serves itself."""
    condition = {"type": "Available", "status": "True" if available else "False", "reason": "Test"}
    full = {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 15, **spec}
    if service is not None:
        full["service"] = {"name": service[0], "namespace": service[1], "port": port}
    return {
        "metadata": {"name": f"{version}.{group}"},
        "spec": full,
        "status": {"conditions": [condition]},
    }


def status(code: int, reason: str) -> web.Response:
    """A metav1.Status as an apiserver answers it."""
    body = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    }  # fmt: skip
    return web.Response(status=code, body=orjson.dumps(body), content_type="application/json")


async def _send(watch: _OpenWatch, event: dict[str, Any]) -> None:
    await watch.response.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))


def _key(item: dict[str, Any]) -> str:
    metadata = item["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _common_name(certificate: Any) -> str | None:
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return None

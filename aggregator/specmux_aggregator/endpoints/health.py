"""The service's own pages: liveness, readiness, metrics and status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.api_discovery.report import discovery_report
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.routes import PageEndpoint, Route
from specmux_aggregator.endpoints.status import (
    ServiceReport,
    document_checks_json,
    is_ready,
    list_waiting,
    status_json,
)
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.negotiation import media_type_for
from specmux_aggregator.http.prepared_answer import NO_STORE, PreparedAnswer, prepare
from specmux_aggregator.metrics.instruments import CONTENT_TYPE, Metrics
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.version import VERSION
from specmux_cache.reading.single_flight import SingleFlight
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON

if TYPE_CHECKING:  # imported where there is a cluster
    from specmux_aggregator.kubernetes.source import ClusterSource

LARGE: Final = 64 * 1024
"""Bytes from which a body is kept: clients that read slowly hold it while it is sent."""

KEPT: Final = 1.0
"""Seconds for which a large body is reused."""


class SharedBody:
    """A body built once and shared. Lives on one event loop."""

    def __init__(self, make: Callable[[], Awaitable[bytes]]) -> None:
        self._make = make
        self._body = b""
        self._made_at = float("-inf")
        self._making: SingleFlight[None, bytes] = SingleFlight()

    async def get(self) -> bytes:
        if len(self._body) >= LARGE and time.monotonic() - self._made_at < KEPT:
            return self._body
        return await self._making.run(None, self._make_once)

    async def _make_once(self) -> bytes:
        started = time.monotonic()
        self._body = await self._make()
        # The time when building began.
        self._made_at = started
        return self._body


TEXT: Final = "text/plain; charset=utf-8"
_STATUS_TYPES: Final = (JSON, CBOR)
"""JSON is also the answer for clients that accept neither, such as browsers."""


@dataclass(slots=True)
class ConfigState:
    """The result of reading the configuration last: written by its reader, read by reports; on one event
    loop. After an error, the previous configuration is in force."""

    error: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state that the pages show. ``config``: the last reading of the configuration. ``discovery`` and
    ``document_checks``: None if off; ``cluster``: None if no cluster is watched."""

    publisher: Publisher
    representations: Representations
    backends: Backends
    backend_sets: BackendSets
    cluster: ClusterSource | None
    discovery: DiscoveryWatch | None
    document_checks: DocumentChecks | None
    config: ConfigState
    first_look: FirstLook
    unread: Callable[[], Mapping[GroupVersion, str]]


class Pages:
    """Each page as a function of a request. ``auth_complaint``: why no caller can be admitted at present."""

    def __init__(
        self, state: ServiceState, metrics: Metrics, *, auth_complaint: Callable[[], str | None]
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._auth_complaint = auth_complaint
        self._has_been_ready = False
        self._metrics_text = SharedBody(self._make_metrics)
        self._status_text = SharedBody(self._make_status)
        self._status_cbor = SharedBody(self._make_status_cbor)

    def routes(self) -> list[Route]:
        return [
            Route("/", PageEndpoint(self._index), "index"),
            Route("/livez", PageEndpoint(self._livez), "livez"),
            Route("/readyz", PageEndpoint(self._readyz), "readyz"),
            Route("/metrics", PageEndpoint(self._metrics_page), "metrics"),
            Route("/status", PageEndpoint(self._status), "status"),
        ]

    async def _index(self, request: Request) -> PreparedAnswer:
        """The index of paths, as at an apiserver's "/". Browsers are redirected to the page."""
        if "text/html" in (request.accept or ""):
            return _redirect("openapi/ui/")
        paths = ["/openapi/v3", "/openapi/explain", "/openapi/search", "/openapi/ui"]
        paths += ["/livez", "/readyz", "/status", "/metrics"]
        paths += ["/api", "/apis"] if self._state.discovery is not None else []
        body = orjson.dumps(
            {"name": "specmux", "version": VERSION, "paths": sorted(paths)},
            option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
        )
        return _page(request, 200, "application/json", body, route="index")

    async def _livez(self, request: Request) -> PreparedAnswer:
        return _page(request, 200, TEXT, b"ok\n", route="livez")

    async def _readyz(self, request: Request) -> PreparedAnswer:
        observations = self._state.publisher.current.observations.values()
        # A backend that is configured later must not make a serving instance unready.
        has_discovery = self._state.discovery is None or self._state.discovery.index.is_complete
        unsettled = self._name_unsettled()
        unbuilt = self._state.first_look.unbuilt()
        self._has_been_ready = self._has_been_ready or (
            not unsettled and has_discovery and is_ready(observations) and not unbuilt
        )
        complaint = self._auth_complaint()
        if complaint is not None:
            # Unlike an unreachable backend, this affects every caller: another instance may do better.
            body = f"nobody can be let in: {complaint}\n".encode()
            return _page(request, 503, TEXT, body, ("Retry-After", "1"), route="readyz")
        if self._has_been_ready:
            return _page(request, 200, TEXT, b"ok\n", route="readyz")
        waiting = unsettled or list_waiting(observations) or unbuilt
        names = ", ".join(waiting or self._without_discovery())
        reasons = {each.failure.detail for each in observations if each.failure and not each.attempted}
        why = "".join(f"{reason}\n" for reason in sorted(reasons))
        body = f"waiting for the first answer of: {names}\n{why}".encode()
        return _page(request, 503, TEXT, body, ("Retry-After", "1"), route="readyz")

    def _name_unsettled(self) -> list[str]:
        """The parts that have not yet reported which backends exist."""
        pending = () if self._state.cluster is None else self._state.cluster.pending
        if not pending and not self._state.backend_sets.is_settled:
            return ["the configuration"]
        return [f"the watch of {name}" for name in pending]

    def _without_discovery(self) -> list[BackendName]:
        followers = self._state.discovery.followers() if self._state.discovery is not None else ()
        return [follower.knowledge.backend.name for follower in followers if not follower.knowledge.attempted]

    async def _metrics_page(self, request: Request) -> PreparedAnswer:
        return _page(request, 200, CONTENT_TYPE, await self._metrics_text.get(), route="metrics")

    async def _make_metrics(self) -> bytes:
        # In a thread: thousands of group-versions are megabytes of text.
        return await asyncio.to_thread(self._metrics.exposition)

    async def _status(self, request: Request) -> PreparedAnswer:
        if "text/html" in (request.accept or ""):
            # A browser: show it on the page.
            return _redirect("openapi/ui/status")
        if media_type_for(request.accept, _STATUS_TYPES) == CBOR:
            return _page(request, 200, CBOR, await self._status_cbor.get(), route="status")
        return _page(request, 200, JSON, await self.status(), route="status")

    async def status(self) -> bytes:
        """The body of ``/status``."""
        return await self._status_text.get()

    async def _make_status(self) -> bytes:
        snapshot, checks, usage = (
            self._state.publisher.current,
            self._state.backends.checks(),
            self._state.representations.usage(),
        )
        cluster = self._state.cluster
        report = ServiceReport(
            version=VERSION,
            config={"error": self._state.config.error},
            sources={} if cluster is None else {"kubernetes": cluster.status()},
            left_out=self._state.backend_sets.problems,
            is_settled=not self._name_unsettled(),
            discovery=self._discovery_report(snapshot),
            openapi_v2=self._metrics.swagger_readers.report(),
            document_checks=self._checks_report(),
            unread=self._state.unread(),
        )
        return await asyncio.to_thread(status_json, snapshot, checks, usage, report, now=time.time())

    async def _make_status_cbor(self) -> bytes:
        body = await self.status()
        from specmux_converters.codecs import cbor

        return await asyncio.to_thread(lambda: cbor.encode(orjson.loads(body)))

    def _checks_report(self) -> Mapping[str, Any] | None:
        checks = self._state.document_checks
        return None if checks is None else document_checks_json(checks.known, waiting=checks.waiting)

    def _discovery_report(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        if self._state.discovery is None:
            return None
        known = [(item.knowledge, item.told_at) for item in self._state.discovery.followers()]
        return discovery_report(
            self._state.discovery.index.directory, known, snapshot, now=time.monotonic(), wall=time.time()
        )


def _redirect(location: str) -> PreparedAnswer:
    """A redirect for browsers. Relative, so that it works behind any prefix."""
    fields = [("Location", location), NO_STORE, ("Vary", "Accept")]
    return prepare(302, fields, route="ui")


def _page(
    request: Request, code: int, content_type: str, body: bytes, *more: tuple[str, str], route: str
) -> PreparedAnswer:
    fields = [("Content-Type", content_type), NO_STORE, ("Vary", "Accept"), *more]
    return prepare(code, fields, body, is_head=request.method == "HEAD", route=route, format="text")

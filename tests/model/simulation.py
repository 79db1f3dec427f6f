"""Simulated apiservers, and whole replicas of the service in front of them: everything but sockets and
processes.

A replica is made of the product's own parts. Only the lowest call of its HTTP client is replaced: it asks a
simulated server.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from unittest import mock
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from model.service_model import ModelBackend, ModelServer, body_of, bytes_of, document_of
from model.virtual_time import TimedThread, VirtualLoop
from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.first_look import FirstLook
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.new_refresher import Refreshers
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.changes.history import History
from specmux_aggregator.config.settings import ChangeSettings, Settings
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.routes import RouteTable
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.http.messages import Coding, ETag, Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import Backend, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.upstream import client
from specmux_aggregator.upstream.body_budget import BODIES, BodyBudget
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.credentials import Identities
from specmux_aggregator.upstream.responses import NotModified, Payload, Redirect
from specmux_aggregator.workers.documents import BuildMemo
from specmux_cache.store.opening import MemoryStore
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

SILENCE: Final = 10.0
"""Seconds after which a client gives up on a server that says nothing, as ``polling.idle_timeout``."""

ANSWERED: Final = 120.0
"""Seconds within which every request has an answer, whatever hangs."""


@dataclass
class World:
    """All backends that exist, and how long each answer takes."""

    backends: list[ModelBackend]
    random: random.Random
    loop: VirtualLoop
    cut: set[tuple[int, str]] = field(default_factory=set)
    """Ways that are frozen: the number of a replica, and the name of a backend. Nothing closes."""

    def backend_at(self, url: str) -> tuple[ModelBackend, ModelServer]:
        """Who answers a request to this URL."""
        place, _, server = url.removeprefix("http://10.0.").partition(":")[0].partition(".")
        backend = self.backends[int(place)]
        if backend.balance == "listed":
            return backend, backend.servers[int(server)]
        return backend, self.random.choice(backend.servers)

    def configured(self, number: int) -> Backend:
        """A backend as the service's configuration has it."""
        model = self.backends[number]
        count = len(model.servers) if model.balance == "listed" else 1
        urls = tuple(f"http://10.0.{number}.{server}:443" for server in range(count))
        facts = ClusterFacts(
            cluster="c",
            is_fallback=model.is_fallback,
            excluded=frozenset(map(GroupVersion, model.excluded)),
            existing=frozenset(map(GroupVersion, model.existing)),
        )
        return Backend(
            name=BackendName(model.name),
            url=urls[0],
            urls=urls if count > 1 else (),
            priority=model.priority,
            group_versions=None if model.owns is None else frozenset(map(GroupVersion, model.owns)),
            found=facts if model.is_found else None,
        )


class SimulatedClient(BackendClient):
    """The product's client above its sockets."""

    def __init__(self, world: World, replica: int, backend: Backend, **kwargs: Any) -> None:
        super().__init__(backend, **kwargs)
        self._world = world
        self._replica = replica

    async def _get(  # type: ignore[override]
        self, target: str, accept: str, *, etag: str | None, **_: Any
    ) -> Payload | NotModified | Redirect | Failure:
        await asyncio.sleep(self._world.random.choice((0.001, 0.02, 0.3)))
        backend, server = self._world.backend_at(self._backend.url)
        is_cut = (self._replica, backend.name) in self._world.cut
        health = "hangs" if is_cut else server.health
        if health == "hangs":
            await asyncio.sleep(SILENCE)
        failure = _FAILURES.get(health)
        if failure is not None:
            return failure
        if self._transport.is_closed:
            return Failure(Cause.INTERNAL, "closed")
        return answer_of(backend, server, target, etag)


_FAILURES: Final = {
    "refuses": Failure(Cause.REFUSED, "connection refused"),
    "hangs": Failure(Cause.TIMEOUT, "silent"),
    "fails": Failure(Cause.SERVER_ERROR, "answered 500", status=500),
    "forbids": Failure(Cause.CREDENTIALS, "answered 403", status=403),
}
_ABSENT: Final = Failure(Cause.NOT_FOUND, "answered 404", status=404)


def answer_of(
    backend: ModelBackend, server: ModelServer, target: str, etag: str | None
) -> Payload | NotModified | Redirect | Failure:
    """The answer of one apiserver."""
    path, _, query = target.partition("?")
    if path == "/version":
        return _payload({"gitVersion": f"v1.{server.release}.0"}, None)
    if path == "/openapi/v2" and backend.speaks == "v2":
        return _payload(swagger_of(backend, server), etag)
    if backend.speaks == "v2":
        return _ABSENT
    bodies = {
        key: body_of(backend.name, key, revision)
        for key, revision in server.documents.items()
        if key not in server.hidden
    }
    if path == "/openapi/v3":
        has_hashes = backend.speaks == "v3"
        urls = {
            key: f"/openapi/v3/{key}" + (f"?hash={hash}" if has_hashes else "")
            for key, (_, hash) in bodies.items()
        }
        return _payload({"paths": {key: {"serverRelativeURL": url} for key, url in urls.items()}}, etag)
    key = path.removeprefix("/openapi/v3/")
    if key not in bodies:
        return _ABSENT
    asked = parse_qs(query).get("hash", [None])[0]
    body, hash = bodies[key]
    if asked is not None and asked != hash:
        return Redirect(301, f"/openapi/v3/{key}?hash={hash}")
    return _payload(body, etag)


def swagger_of(backend: ModelBackend, server: ModelServer) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for key, revision in server.documents.items():
        if key not in server.hidden:
            paths |= document_of(backend.name, key, revision)["paths"]
    return {"swagger": "2.0", "info": {"title": "all", "version": "v1"}, "paths": paths}


def _payload(document: object, etag: str | None) -> Payload | NotModified:
    body = document if isinstance(document, bytes) else bytes_of(document)
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return NotModified() if etag == tag else Payload(body, Coding.IDENTITY, JSON, ETag(tag))


class InlineWorker:
    """The product's worker without its process."""

    is_up = True

    def __init__(self) -> None:
        self._memo = BuildMemo()

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    async def build(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(self._memo, *args, **kwargs)


DISK_SECONDS: Final = (0.0, 0.001, 0.05)


class Died(asyncio.CancelledError):
    """The process ended in the middle of this."""


class Disk(MemoryStore):
    """What outlives a process. Each process has its own view; one that died writes nothing any more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(1 << 24, clock=clock)
        self.writer = 0
        """The number of the process that may write."""
        self.dies_after: int | None = None
        """Writes until the process dies; None: it does not."""
        self.dies_before = False
        """Whether that last write never reaches the disk."""
        self.died: Callable[[], None] = lambda: None

    def put(self, key: Any, body: bytes, *, metadata: Any) -> Any:
        if self.dies_after is not None:
            self.dies_after -= 1
        if self.dies_after == -1:
            self.dies_after = None
            if not self.dies_before:
                super().put(key, body, metadata=metadata)
            self.died()
            raise Died
        return super().put(key, body, metadata=metadata)

    def close(self) -> None:
        """What is on disk stays."""


class _View:
    """A process's way to its disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        disk.writer += 1
        self._number = disk.writer

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "delete", "touch") and self._number != self._disk.writer:
            return lambda *_, **__: None
        return getattr(self._disk, name)


class Replica:
    """One process of the service. ``disk``: its state directory; None: it has none."""

    def __init__(self, world: World, number: int, *, disk: Disk | None, settle: float) -> None:
        self._world = world
        self._number = number
        settings = Settings(changes=ChangeSettings(settle=settle, entries=8))
        self.state: StateDirectory | None = None
        if disk is not None:
            self.state = StateDirectory(_View(disk), max_document_bytes=1 << 20)  # type: ignore[arg-type]
            self._thread = TimedThread(world.loop, partial(world.random.choice, DISK_SECONDS))
            self.state._thread = self._thread  # type: ignore[assignment]
            disk.died = self._die
        self.is_dead = False
        worker: Any = InlineWorker()
        self.representations = Representations(max_bytes=1 << 22)
        self.publisher = Publisher(self.representations, timed=lambda *_: None, archive=self.state)
        self.documents = DocumentRepository(
            self.representations,
            worker,
            self.state,
            origin_of=lambda name: self.backends.origin(name),
            limits=settings.limits.of_documents,
            timed=lambda *_: None,
            failure_of=self._failure_of,
        )
        self._refreshers = Refreshers(
            builder=worker,
            identities=Identities(),
            bodies=BodyBudget(BODIES * settings.limits.max_document_bytes),
            settings=settings,
            publish=self.publisher.publish,
            observed=lambda *_: None,
            pace=Pace(),
        )
        self.backends = Backends(
            self.publisher,
            make=self._refresher,
            restore=None if self.state is None else self.state.restore,
        )
        self.sets = BackendSets(self.backends.apply)
        self.history = History(
            settings.changes,
            worker,
            self.state,
            held=self.documents.find_json,
            obtain=self.documents.obtain_gzip,
            limits=settings.limits.of_documents,
            noted=lambda *_: None,
            is_looking=lambda: self.first_look.is_pending(),
        )
        self.publisher.subscribe(self.history.follow)
        self.documents.subscribe(self.history.note_fetched)
        self.first_look = FirstLook(
            lambda: self.publisher.current.observations.values(), is_settled=lambda: self.sets.is_settled
        )
        self.service = Service(
            self.publisher,
            self.representations,
            self.documents,
            refresher_of=self.backends.refresher,
            routes=RouteTable([]),
            first_look=self.first_look,
        )

    async def start(self) -> None:
        _OWNER.set(self)
        self.first_look.start()
        await self.history.start()
        await self.configure()

    async def configure(self) -> None:
        """Take the world's backends into the configuration."""
        if self.is_dead:
            return
        _OWNER.set(self)
        mine = [number for number, each in enumerate(self._world.backends) if each.is_configured]
        all_of_them = [self._world.configured(number) for number in mine]
        with mock.patch.object(client, "BackendClient", partial(SimulatedClient, self._world, self._number)):
            self.sets.find(tuple(each for each in all_of_them if each.found is not None))
            try:
                await self.sets.configure(tuple(each for each in all_of_them if each.found is None))
            except asyncio.CancelledError:
                if not self.is_dead:
                    raise

    async def stop(self) -> None:
        self.is_dead = True  # it listens no more
        self.history.followers.close()
        for part in (self.sets, self.backends, self.history, self.documents, self.state):
            if part is not None:
                await part.close()

    async def kill(self) -> None:
        self._die()
        await asyncio.sleep(0)

    def _die(self) -> None:
        """End at once: nothing more is written, sent or asked."""
        self.is_dead = True
        if self.state is not None:
            disk = self.state._store._disk  # type: ignore[attr-defined]
            disk.writer += 1
            self._thread.die()
        for task in [each for each, owner in OWNERS.items() if owner is self]:
            task.cancel()
        self.history.followers.close()

    async def answer(self, request: Request) -> PreparedAnswer | None:
        """None if the process dies over it."""
        _OWNER.set(self)
        answering = asyncio.create_task(self._answer(request))
        try:
            async with asyncio.timeout(ANSWERED):
                return await answering
        except asyncio.CancelledError:
            if self.is_dead:
                return None
            raise
        except TimeoutError as error:
            raise AssertionError(f"{request.path} has no answer") from error

    async def _answer(self, request: Request) -> PreparedAnswer:
        answer = self.service.immediate(request)
        return answer if isinstance(answer, PreparedAnswer) else await self.service.respond(answer)

    def versions(self) -> Mapping[str, tuple[str, str]]:
        entries = self.publisher.current.entries
        return {key: (entry.offer.hash, entry.owner) for key, entry in entries.items()}

    def _refresher(self, observation: Observation) -> Refresher:
        return self._refreshers.refresher_of(observation, manifests=None, follow=None)

    def _failure_of(self, name: BackendName) -> Failure | None:
        observation = self.publisher.current.observations.get(name)
        return None if observation is None else observation.failure


_OWNER: ContextVar[Replica | None] = ContextVar("owner", default=None)
OWNERS: WeakKeyDictionary[asyncio.Task[Any], Replica | None] = WeakKeyDictionary()


def owned_task(loop: asyncio.AbstractEventLoop, work: Any, **kwargs: Any) -> asyncio.Task[Any]:
    """A task factory that notes which replica a task belongs to."""
    task = asyncio.Task(work, loop=loop, **kwargs)
    OWNERS[task] = _OWNER.get()
    return task

"""The servers of one backend that are known by name: by URLs, or by addresses of one URL.

Each has its own client. One that does not answer delays no other: it is retried at growing intervals, and its
last offers count while it is listed. An address that never answered does not count as a server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from specmux_aggregator.backend_sources.hedge import DocumentAnswer
from specmux_aggregator.backend_sources.shared_documents import digest_of_own
from specmux_aggregator.backend_sources.sightings import Sightings
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.server_union import BackendServer, Hash, Offers, git_version, union_of
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, NotModified, Payload, fresh_client
from specmux_cache.http.connections.addresses import Address
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

# Two are behind it once its root went back to an earlier one and new connections see another at the same
# time: a server alone may go back, too (a definition that comes and goes). From then on it stands for what
# they offer together, until one of them was not seen for long.

PROBES_AFTER_RETURN: Final = 4
"""New connections that are tried where a root went back."""

PROBES_OF_SEVERAL: Final = 2
"""New connections of each check where there are several servers."""

REQUESTS: Final = 12
"""New connections by which a document is asked for, where there are several."""

REQUESTS_ALONE: Final = 6
"""The same, where the root listed what the server then denied, and no other was seen."""

PAUSE_MAX: Final = 60.0
"""Seconds until a server that fails is asked again, at most."""

STEADY: Final = 60.0
"""Seconds in which a server that failed, and came back as it was, must not fail before it wins again."""


@dataclass(slots=True)
class ListedServer:
    connect: Callable[[], BackendClient]
    client: BackendClient
    seen: Sightings[BackendRoot]
    """Roots by what identifies them."""
    root: BackendRoot | None = None
    """The last."""
    hides_several: bool = False
    version: str | None = None
    failure: Failure | None = None
    failures: int = 0
    """In a row."""
    ask_at: float = 0.0
    """Monotonic seconds, as the next."""
    steady_at: float = 0.0
    asking: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_up(self) -> bool:
        return self.root is not None and self.failure is None

    @property
    def offers(self) -> Offers:
        if self.root is None or not self.hides_several:
            return {} if self.root is None else self.root.offers
        return union_of(BackendServer(name, root.offers) for name, root in self.seen.items())

    async def take(self, root: BackendRoot, now: float) -> None:
        name = digest_of_own(root)
        is_same = self.root is not None and digest_of_own(self.root) == name
        goes_back = not is_same and self.seen.get(name) is not None
        self.root = root
        self.seen.note(name, root)
        if self.hides_several or goes_back:
            await self._look(name)
        self.seen.expire(kept=(name,))
        self.hides_several = self.hides_several and len(self.seen) > 1
        if not is_same and not self.hides_several:
            self.steady_at = now  # another server has come in its place
        elif self.failures:
            self.steady_at = now + STEADY
        self.failure, self.failures, self.ask_at = None, 0, now

    def fail(self, failure: Failure, now: float) -> None:
        self.failure = failure
        self.failures += 1
        self.ask_at = now + min(PAUSE_MAX, 2.0 ** min(self.failures - 1, 10))

    def asks(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> Iterator[Callable[[], Awaitable[DocumentAnswer]]]:
        """What asks for a document; nothing where it is not listed."""
        if self.offers.get(group_version) != hash:
            return
        yield partial(self.client.document, group_version, hash=hash, accept_gzip=accept_gzip)
        for _ in range(REQUESTS if self.hides_several else REQUESTS_ALONE):
            yield partial(self._document_anew, group_version, hash, accept_gzip=accept_gzip)

    async def close(self) -> None:
        if self.asking is not None:
            self.asking.cancel()
            await asyncio.gather(self.asking, return_exceptions=True)
        await self.client.close()

    async def _look(self, name: str) -> None:
        count = PROBES_OF_SEVERAL if self.hides_several else PROBES_AFTER_RETURN
        roots = await asyncio.gather(*(self._root_anew() for _ in range(count)))
        for root in roots:
            if isinstance(root, BackendRoot):
                self.seen.note(digest_of_own(root), root)
                self.hides_several |= digest_of_own(root) != name

    async def _root_anew(self) -> object:
        async with fresh_client(self.connect) as client:
            return await client.root()

    async def _document_anew(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> DocumentAnswer:
        async with fresh_client(self.connect) as client:
            return await client.document(group_version, hash=hash, accept_gzip=accept_gzip)


SERVERS_MAX: Final = 16
"""Most servers of one backend."""

STRAGGLING: Final = 5.0
"""Seconds for which a check waits for the others once one server has answered."""

VERSION_MAX: Final = 64
"""Characters of the longest version that is kept."""

Answered = TypeVar("Answered")


class NewClient(Protocol):
    """Creates a client with its own connections, optionally to one address of the backend."""

    def __call__(self, *, address: Address | None = None) -> BackendClient: ...


class ListedServers:
    """Lives on one event loop until ``close``."""

    def __init__(
        self,
        connect: Mapping[str, NewClient],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect``: by URL; if there are several, each belongs to one server."""
        self._is_fixed = len(connect) > 1
        self._servers = {url: _made(make, now) for url, make in connect.items()} if self._is_fixed else {}
        self._new_client = next(iter(connect.values()))
        self._now = now

    @property
    def are_several(self) -> bool:
        return self._is_fixed or sum(each.root is not None for each in self._servers.values()) > 1

    async def keep(self, addresses: Iterable[Address]) -> None:
        """Set the current addresses. The configuration's URLs are fixed."""
        if self._is_fixed:
            return
        named = {name_of(address): address for address in sorted(addresses)[:SERVERS_MAX]}
        gone = [self._servers.pop(name) for name in self._servers.keys() - named.keys()]
        for name in named.keys() - self._servers.keys():
            self._servers[name] = _made(partial(self._new_client, address=named[name]), self._now)
        for each in gone:
            await each.close()

    def known(self) -> tuple[BackendServer, ...]:
        """Each server as last seen, highest rank first."""
        now = self._now()
        versions = [each.version for each in self._servers.values() if each.root is not None]
        known = (
            BackendServer(
                name,
                each.offers,
                each.version if all(versions) else None,
                each.failure,
                each.failure is None and now >= each.steady_at,
            )
            for name, each in self._servers.items()
            if each.root is not None or self._is_fixed
        )
        return tuple(sorted(known, key=lambda server: server.rank, reverse=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages about servers with problems."""
        roots = [each.root for each in self._servers.values() if each.root is not None]
        failed = (
            f"server {name}: {each.failure.cause}: {each.failure.detail}"
            for name, each in self._servers.items()
            if each.failure is not None and (each.root is not None or self._is_fixed)
        )
        return (*dict.fromkeys(key for root in roots for key in root.ignored), *failed)

    async def look(self) -> Failure | None:
        """Request each server's root. Returns a Failure of one if no server has ever answered, or none does
        now."""
        now = self._now()
        due = [each for each in self._servers.values() if each.asking is None and each.ask_at <= now]
        for each in due or self._servers.values():
            if each.asking is None:
                each.asking = asyncio.create_task(self._ask(each))
        pending = {each.asking for each in self._servers.values() if each.asking is not None}
        until: float | None = None
        while pending:
            done, pending = await asyncio.wait(
                pending,
                timeout=None if until is None else max(0.0, until - self._now()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                break
            for asked in done:
                asked.result()  # a bug is logged by the caller
            if until is None and any(each.is_up for each in self._servers.values()):
                until = self._now() + STRAGGLING
        for each in self._servers.values():
            if each.asking in pending:
                each.failure = each.failure or Failure(Cause.TIMEOUT, "has not answered yet")
        failures = [each.failure for each in self._servers.values()]
        return None if None in failures or not failures else failures[0]

    def holders(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> list[Callable[[], Awaitable[DocumentAnswer]]]:
        """Functions that request a document from each server that lists it; failing servers come last."""
        servers = sorted(self._servers.values(), key=lambda each: each.failures)
        asks = [[*each.asks(group_version, hash, accept_gzip=accept_gzip)] for each in servers]
        # Each once, before any of them by other connections.
        return [ask for each in asks for ask in each[:1]] + [ask for each in asks for ask in each[1:]]

    async def each(self, ask: Callable[[BackendClient], Awaitable[Answered]]) -> dict[str, Answered]:
        """Answers by server, of those that do not fail; of all if all fail."""
        asked = {name: each for name, each in self._servers.items() if each.is_up} or self._servers
        answers = await asyncio.gather(*(ask(each.client) for each in asked.values()))
        return dict(zip(asked, answers, strict=True))

    async def close(self) -> None:
        for each in self._servers.values():
            await each.close()

    async def _ask(self, each: ListedServer) -> None:
        try:
            held = each.root
            root = await each.client.root(etag=None if held is None else held.etag)
            if isinstance(root, NotModified):
                root = held or Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
            if isinstance(root, Failure):
                each.fail(root, self._now())
                return
            version = await each.client.discovery("/version", JSON)
            if not isinstance(version, Failure) or version.cause is Cause.NOT_FOUND:
                each.version = version_in(version)
            await each.take(root, self._now())
        finally:
            each.asking = None


def _made(connect: Callable[[], BackendClient], now: Callable[[], float]) -> ListedServer:
    return ListedServer(connect, connect(), Sightings(now))


def name_of(address: Address) -> str:
    """``10.0.0.1:6443`` or ``[fd00::1]:6443``."""
    host, port = address[1][:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def version_in(answer: Payload | NotModified | Failure) -> str | None:
    """The ``gitVersion`` in a server's answer to ``/version``."""
    if not isinstance(answer, Payload) or answer.coding is not Coding.IDENTITY:
        return None
    version = git_version(answer.body)
    return None if version is None else version[:VERSION_MAX]

"""The servers of one backend: known by name, and hidden behind a name where a load balancer distributes
connections or requests."""

# Theory of operation
#
# A ``NamedServer`` is a URL of the configuration, or an address that the cluster or DNS
# tells. It is asked for its root over its usual connections, with an entity tag. Behind the name there may be
# several servers, of which a usual connection shows one for hours. Roots give them away: a name that serves
# A, then B, then A again is two servers, since one that was updated does not go back.
#
# Three occasions start a search over new connections, which the balancer distributes: the root went back or
# lost something; a document was denied that the root lists; and two connections disagreed at the last check.
# For the last one, the checks after a failure, and then one from time to time, go by a new connection
# instead of the usual ones. A search ends with A, B, A, or when several answers in a row agree. A
# disagreement is looked into one check later, not at once: servers that follow one cluster disagree for a
# moment after each change of it.
#
# From then on each check makes PROBES new connections, and the name stands for the union of what was seen,
# until all but one root was not seen for long. A ``ServerSet`` unites its names in the same way.
#
# What must never happen: more requests to a single server than its checks, but for the searches; a
# group-version that goes before the last server that had it; a server that hangs and delays another.

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from yarl import URL

from specmux_aggregator.backend_sources.addresses import BackendAddresses
from specmux_aggregator.backend_sources.hedge import DocumentAnswer, contradicts, first_document, plain
from specmux_aggregator.backend_sources.shared_documents import digest_of_own, own_offers
from specmux_aggregator.backend_sources.sightings import Sightings
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.server_union import BackendServer, Offers, git_version, union_of
from specmux_aggregator.upstream.client import (
    BackendClient,
    BackendRoot,
    MovedDocument,
    NotModified,
    Payload,
    fresh_client,
)
from specmux_aggregator.upstream.connections.addresses import Address, is_literal
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

AGREEING: Final = 4
AGREEING_AGAINST: Final = 6
"""Equal roots over new connections that prove a single server; more if a document contradicted its root."""

LOOKS: Final = 8
"""Most roots of one search."""

PROBES: Final = 2
"""New connections per check where there are several servers."""

ANEW: Final = 10.0
"""Seconds between checks that go by a new connection, once AGREEING of them found nothing else."""

TRIES: Final = 16
"""New connections over which a document is requested until it counts as absent."""

TRIES_ALONE: Final = 6
"""The same if all roots suggest a single server."""

FAILURES_MAX: Final = 3
"""How many of these may fail for other reasons."""

FORMER_SECONDS: Final = 600.0
"""Seconds for which a replaced root is remembered."""

FORMER_MAX: Final = 16

UNASKED_SECONDS: Final = 1.0
"""Seconds after a search found one server in which contradictions start no other search."""

PAUSE_MAX: Final = 60.0
"""Most seconds until a server that fails is asked again."""

STEADY: Final = 60.0
"""Seconds without a failure after which a server that failed ranks as before."""

STRAGGLING: Final = 5.0
"""Seconds for which a check waits for the others once one server has answered."""

ADDRESSES_AGAIN: Final = 60.0
"""Seconds until unreachable addresses are tried again; doubled each time."""

ADDRESSES_AGAIN_MAX: Final = 3600.0

SERVERS_MAX: Final = 16
"""Most servers of one backend."""

VERSION_MAX: Final = 64
"""Characters of the longest version that is kept."""

Answered = TypeVar("Answered")


class NewClient(Protocol):
    """Creates a client with its own connections, optionally to one address of the backend."""

    def __call__(self, *, address: Address | None = None) -> BackendClient: ...


@dataclass(frozen=True, slots=True)
class _Sighting:
    root: BackendRoot
    version: str | None


class NamedServer:
    """A server known by name, which may hide several. Lives on one event loop until ``close``."""

    def __init__(self, connect: Callable[[], BackendClient], now: Callable[[], float]) -> None:
        self.client = connect()
        self.root: BackendRoot | None = None
        """The last; while several are hidden, that of one of them."""
        self.version: str | None = None
        self.failure: Failure | None = None
        self.failures = 0
        """In a row."""
        self.notes: tuple[str, ...] = ()
        self.ask_at = 0.0
        """Monotonic seconds, as the next."""
        self.steady_at = 0.0
        self.checking: asyncio.Task[None] | None = None
        self.hides_several = False
        self._connect = connect
        self._now = now
        self._seen: Sightings[_Sighting] = Sightings(now)
        self._former: deque[tuple[str, float]] = deque(maxlen=FORMER_MAX)
        self._is_per_request = False
        """Whether one connection reaches several servers, so consecutive answers may differ in origin."""
        self._searching = asyncio.Lock()
        self._alone_until = 0.0
        self._anew_at = 0.0
        self._agreed = 0
        """Number of checks by new connections that found nothing else, since the last failure."""
        self._is_in_doubt = False
        """Whether two connections disagreed at the last check."""

    @property
    def is_up(self) -> bool:
        return self.root is not None and self.failure is None

    @property
    def offers(self) -> Offers:
        if self.hides_several:
            return union_of(self.list_hidden())
        return {} if self.root is None else self.root.offers

    def list_hidden(self) -> list[BackendServer]:
        """The servers behind the name, if there are several."""
        seen = self._seen.items() if self.hides_several else []
        is_versioned = not self._is_per_request and all(each.version for _, each in seen)
        return [
            BackendServer(name, each.root.offers, each.version if is_versioned else None)
            for name, each in seen
        ]

    async def check(self, *, wants_version: bool) -> None:
        """Request the root. Sets ``failure``."""
        held = self.root
        answer = await (self._check_hidden() if self.hides_several else self._check_usual())
        if isinstance(answer, Failure):
            self.failure = answer
            self.failures += 1
            self._agreed = 0
            self.ask_at = self._now() + min(PAUSE_MAX, 2.0 ** min(self.failures - 1, 10))
            return
        is_other = held is not None and own_offers(held) != own_offers(answer)
        self.root = answer
        if not self.hides_several:
            if wants_version:
                version = await self.client.discovery("/version", JSON)
                if not isinstance(version, Failure) or version.cause is Cause.NOT_FOUND:
                    self.version = version_in(version)
            if held is not None and is_other:
                await self._look_at_change(answer, held)
        if is_other and not self.hides_several:
            self.steady_at = self._now()  # another server has come in its place
        elif self.failures:
            self.steady_at = self._now() + STEADY
        self.failure, self.failures, self.ask_at = None, 0, self._now()

    def requests(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> list[Callable[[], Awaitable[DocumentAnswer]]]:
        """Functions that request a document: over a usual connection, then over new ones."""

        async def anew() -> DocumentAnswer:
            async with fresh_client(self._connect) as client:
                return await client.document(group_version, hash=hash, accept_gzip=accept_gzip)

        usual = partial(self.client.document, group_version, hash=hash, accept_gzip=accept_gzip)
        return [usual, *[anew] * (TRIES if self.hides_several else TRIES_ALONE)]

    async def document(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """A document from a server that stands alone in its set."""
        is_listed = self.offers.get(group_version) == hash
        if not self.hides_several or not is_listed:
            answer = plain(await self.client.document(group_version, hash=hash, accept_gzip=accept_gzip))
            if isinstance(answer, Payload) or not contradicts(answer) or not is_listed:
                return answer
            if self.root is not None and self._now() >= self._alone_until:
                await self._search([digest_of_own(self.root)], agreeing=AGREEING_AGAINST)
            if not self.hides_several:
                # The root listed it a moment ago: many roots may agree by chance.
                anew = self.requests(group_version, hash, accept_gzip=accept_gzip)[1:]
                again = await first_document(anew, failures_max=1)
                return again if isinstance(again, Payload) else answer
        requests = self.requests(group_version, hash, accept_gzip=accept_gzip)
        found = await first_document(requests, failures_max=FAILURES_MAX)
        assert found is not None
        return found

    async def ask_probes(self, ask: Callable[[BackendClient], Awaitable[Answered]]) -> list[Answered]:
        """Answers over as many new connections as each check uses."""

        async def asked() -> Answered:
            async with fresh_client(self._connect) as client:
                return await ask(client)

        # Concurrently, so that a hanging server delays the others by its own timeout only.
        return await asyncio.gather(*(asked() for _ in range(PROBES)))

    def forget_hidden(self) -> None:
        self._seen.clear()
        self.hides_several = self._is_per_request = False

    async def close(self) -> None:
        if self.checking is not None:
            self.checking.cancel()
            await asyncio.gather(self.checking, return_exceptions=True)
        await self.client.close()

    async def _check_usual(self) -> BackendRoot | Failure:
        held, now = self.root, self._now()
        if held is not None and self._is_in_doubt:
            self._is_in_doubt = False
            await self._search([digest_of_own(held)], agreeing=AGREEING)
            if self.hides_several:
                return held
        is_due = self._agreed < AGREEING or now >= self._anew_at
        if held is None or self.failures or not is_due:
            return await self._usual_root(held)
        self._anew_at = now + ANEW
        async with fresh_client(self._connect) as client:
            anew = await client.root(etag=held.etag)
        if isinstance(anew, NotModified):
            anew = held
        if isinstance(anew, BackendRoot) and own_offers(anew) == own_offers(held):
            self._agreed += 1
            return anew
        root = await self._usual_root(held)
        if isinstance(root, BackendRoot) and isinstance(anew, BackendRoot):
            self._is_in_doubt = own_offers(root) != own_offers(anew)
            self._agreed += not self._is_in_doubt
        return root

    async def _usual_root(self, held: BackendRoot | None) -> BackendRoot | Failure:
        answer = await self.client.root(etag=None if held is None else held.etag)
        if isinstance(answer, NotModified):
            return held or Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
        return answer

    async def _check_hidden(self) -> BackendRoot | Failure:
        answers = await self.ask_probes(self._probe)
        self._seen.expire(outgrown=self._list_outgrown())
        found = [each for each in answers if isinstance(each, BackendRoot)]
        failed = [each for each in answers if isinstance(each, Failure)]
        self.notes = tuple(f"one of its servers: {each.cause}: {each.detail}" for each in failed)
        if len(self._seen) < 2:
            self.forget_hidden()
        return found[0] if found else failed[0]

    async def _look_at_change(self, root: BackendRoot, held: BackendRoot) -> None:
        """Search if the root of the usual connections changed in a way that suggests another server."""
        now, name = self._now(), digest_of_own(root)
        is_back = any(name == former and now - moment < FORMER_SECONDS for former, moment in self._former)
        self._former.append((digest_of_own(held), now))
        if is_back or held.offers.keys() - root.offers.keys():
            await self._search([name], agreeing=AGREEING)

    async def _search(self, names: list[str], *, agreeing: int) -> None:
        """Find out whether servers other than the one with the root ``names`` answer; ``agreeing`` equal
        roots prove a single one. Concurrent calls share one search."""
        before = self._alone_until
        async with self._searching:
            if self.hides_several or self._alone_until != before:
                return  # another call has searched meanwhile
            for _ in range(LOOKS):
                async with fresh_client(self._connect) as client:
                    answer = await self._probe(client)
                if isinstance(answer, Failure):
                    continue
                names.append(digest_of_own(answer))
                if _goes_back(names) or (len(names) > agreeing and len({*names[-agreeing:]}) == 1):
                    break
            if _goes_back(names):
                if names.count(names[0]) == 1:
                    self._seen.forget(names[0])  # the previous root belongs to no server any more
                self.hides_several = len(self._seen) > 1
            if not self.hides_several:
                self.forget_hidden()
                # A shorter search leaves a doubt, which a contradiction renews.
                if agreeing == AGREEING_AGAINST:
                    self._alone_until = self._now() + UNASKED_SECONDS

    async def _probe(self, client: BackendClient) -> BackendRoot | Failure:
        """The root over a new connection, noted with the version of the server that answered."""
        root = await client.root()
        if isinstance(root, NotModified):
            return Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
        if isinstance(root, Failure):
            return root
        version = None
        if not self._is_per_request:
            # Between two versions and two roots no other server can hide by turns.
            versions = {version_in(await client.discovery("/version", JSON)) for _ in range(2)} - {None}
            again = await client.root(etag=root.etag)
            is_back = False
            if isinstance(again, BackendRoot) and own_offers(again) != own_offers(root):
                # One that starts, or whose definitions change, does not go back; turns of requests do.
                last = await client.root()
                is_back = isinstance(last, BackendRoot) and own_offers(last) == own_offers(root)
                root = again
            self._is_per_request = is_back or len(versions) > 1
            version = versions.pop() if len(versions) == 1 else None
        name = digest_of_own(root)
        before = self._seen.get(name)
        if version is None and before is not None:
            version = before.version
        self._seen.note(name, _Sighting(root, version))
        return root

    def _list_outgrown(self) -> list[str]:
        """Roots that lack only some of what another of the same release has: a server's that has started
        since, which the union does not need."""
        seen = [(name, each.version, own_offers(each.root)) for name, each in self._seen.items()]
        return [
            name
            for name, version, offers in seen
            if version is not None
            and any(version == other and offers.items() < more.items() for _, other, more in seen)
        ]


class ServerSet:
    """All servers of one backend, at least one. Lives on one event loop until ``close``."""

    def __init__(
        self,
        connect: Mapping[str, NewClient],
        *,
        has_addresses: bool = False,
        now: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        """``connect``: by URL; if there are several, each belongs to one server. ``has_addresses``: whether,
        with a single URL, each address of its host may belong to a server."""
        self._by_url = {url: NamedServer(make, now) for url, make in connect.items()}
        url, self._new_client = next(iter(connect.items()))
        self._by_address: dict[str, NamedServer] = {}
        self._addresses = BackendAddresses(now=now) if has_addresses and len(connect) == 1 else None
        self._is_named = not is_literal(URL(url, encoded=True).raw_host or "")
        self._addresses_again = 0.0
        self._addresses_pause = ADDRESSES_AGAIN
        self._now = now

    @property
    def client(self) -> BackendClient:
        """The client of the first URL, for what any server may answer."""
        return next(iter(self._by_url.values())).client

    @property
    def are_known(self) -> bool:
        """Whether there is more than one server."""
        named = self._current_servers()
        return len(named) > 1 or any(each.hides_several for each in named.values())

    def servers(self) -> tuple[BackendServer, ...]:
        """Each server as last seen, highest rank first; empty if there is only one."""
        named = self._current_servers()
        if len(named) == 1:
            servers = [hidden for each in named.values() for hidden in each.list_hidden()]
        else:
            now = self._now()
            has_versions = all(each.version for each in named.values() if each.root is not None)
            servers = [
                BackendServer(
                    name,
                    each.offers,
                    each.version if has_versions else None,
                    each.failure,
                    each.failure is None and now >= each.steady_at,
                )
                for name, each in named.items()
                if each.root is not None or name in self._by_url
            ]
        return tuple(sorted(servers, key=lambda each: each.rank, reverse=True))

    async def root(self, backend: Backend) -> BackendRoot | Failure:
        """The union of what the servers offer now; a Failure if none answers. ``backend``: with its current
        addresses."""
        await self._find(backend)
        named = self._current_servers()
        failure = await self._check(named)
        if failure is not None:
            return failure
        if not self.are_known:
            root = next(iter(named.values())).root
            assert root is not None
            return root
        ignored = [key for each in named.values() if each.root is not None for key in each.root.ignored]
        failed = [
            f"server {name}: {each.failure.cause}: {each.failure.detail}"
            for name, each in named.items()
            if each.failure is not None and (each.root is not None or name in self._by_url)
        ]
        hidden = [note for each in named.values() if each.hides_several for note in each.notes]
        return BackendRoot(union_of(self.servers()), None, (*dict.fromkeys(ignored), *failed, *hidden))

    async def document(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """A document under this hash from any server that has it."""
        named = self._current_servers()
        if len(named) == 1:
            alone = next(iter(named.values()))
            return await alone.document(group_version, hash, accept_gzip=accept_gzip)
        holders = [
            each.requests(group_version, hash, accept_gzip=accept_gzip)
            for each in sorted(named.values(), key=lambda each: each.failures)
            if each.offers.get(group_version) == hash
        ]
        # Each once, before any of them by other connections.
        requests = [each[0] for each in holders] + [again for each in holders for again in each[1:]]
        answer = await first_document(requests, failures_max=FAILURES_MAX)
        return answer or Failure(Cause.NOT_FOUND, "no server of the backend lists the document")

    async def ask_each(
        self, ask: Callable[[BackendClient], Awaitable[Answered]]
    ) -> list[tuple[str | None, Answered]]:
        """Answers with the name of each server that does not fail, of all if all fail; of servers behind one
        name without a name."""
        named = self._current_servers()
        if len(named) == 1:
            alone = next(iter(named.values()))
            return [(None, answer) for answer in await alone.ask_probes(ask)]
        asked = {name: each for name, each in named.items() if each.is_up} or named
        answers = await asyncio.gather(*(ask(each.client) for each in asked.values()))
        return list(zip(asked, answers, strict=True))

    async def close(self) -> None:
        for each in (*self._by_url.values(), *self._by_address.values()):
            await each.close()

    def _current_servers(self) -> dict[str, NamedServer]:
        """The servers by address once several of these have answered, else by URL."""
        if not self._by_address:
            return self._by_url
        answering = sum(each.root is not None for each in self._by_address.values())
        return self._by_address if answering > 1 else self._by_url

    async def _find(self, backend: Backend) -> None:
        """Take the current addresses of the backend for its servers, if they can be reached."""
        has_slices = backend.found is not None and bool(backend.found.servers)
        if self._addresses is None or not (has_slices or self._is_named or self._by_address):
            return
        found = await self._addresses.of(backend)
        await self._keep(found if len(found) > 1 else ())
        if not self._by_address:
            return
        if self._current_servers() is self._by_url and self._now() >= self._addresses_again:
            await self._check(self._by_address)
            self._addresses_again = self._now() + self._addresses_pause
            self._addresses_pause = min(ADDRESSES_AGAIN_MAX, 2 * self._addresses_pause)
        if self._current_servers() is self._by_address:
            self._addresses_pause = ADDRESSES_AGAIN
            for each in self._by_url.values():
                each.forget_hidden()

    async def _keep(self, addresses: Iterable[Address]) -> None:
        current = {name_of(address): address for address in sorted(addresses)[:SERVERS_MAX]}
        gone = [self._by_address.pop(name) for name in self._by_address.keys() - current.keys()]
        for name in current.keys() - self._by_address.keys():
            connect = partial(self._new_client, address=current[name])
            self._by_address[name] = NamedServer(connect, self._now)
        for each in gone:
            await each.close()

    async def _check(self, named: Mapping[str, NamedServer]) -> Failure | None:
        """Request each server's root. Returns a Failure of one if no server has ever answered, or none does
        now."""
        if len(named) == 1:
            alone = next(iter(named.values()))
            await alone.check(wants_version=False)
            return alone.failure
        now = self._now()
        idle = [each for each in named.values() if each.checking is None]
        for each in [each for each in idle if each.ask_at <= now] or idle:
            each.checking = asyncio.create_task(_check_one(each))
        pending = {each.checking for each in named.values() if each.checking is not None}
        until: float | None = None
        while pending:
            done, pending = await asyncio.wait(
                pending,
                timeout=None if until is None else max(0.0, until - self._now()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                break
            for checked in done:
                checked.result()  # a bug is logged by the caller
            if until is None and any(each.is_up for each in named.values()):
                until = self._now() + STRAGGLING
        for each in named.values():
            if each.checking in pending:
                each.failure = each.failure or Failure(Cause.TIMEOUT, "has not answered yet")
        failures = [each.failure for each in named.values()]
        return None if None in failures or not failures else failures[0]


async def _check_one(server: NamedServer) -> None:
    try:
        await server.check(wants_version=True)
    finally:
        server.checking = None


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


def _goes_back(names: list[str]) -> bool:
    """Whether a root was seen, then another, then the first again."""
    return any(
        names[first] in names[second + 1 :]
        for first in range(len(names))
        for second in range(first + 1, len(names))
        if names[second] != names[first]
    )

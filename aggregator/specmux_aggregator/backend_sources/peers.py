"""The servers of one backend: known by name (``listed_servers``), or hidden behind one address where a load
balancer distributes connections or requests.

Hidden servers are recognized by their roots. Two are assumed once one root was seen, then another, then the
first again, since an updated server does not go back. From then on each check opens new connections, which
the balancer distributes, and the union of the offers is published. With a single server there are no
additional requests, except four roots when it seems to have lost something.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from yarl import URL

from specmux_aggregator.backend_sources.addresses import BackendAddresses
from specmux_aggregator.backend_sources.hedge import contradicts, first_document
from specmux_aggregator.backend_sources.listed_servers import ListedServers, NewClient, version_in
from specmux_aggregator.backend_sources.shared_documents import digest_of_own, own_offers
from specmux_aggregator.backend_sources.sightings import Sightings
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.server_union import BackendServer, Offers, union_of
from specmux_aggregator.upstream.client import (
    BackendClient,
    BackendRoot,
    MovedDocument,
    NotModified,
    Payload,
    fresh_client,
)
from specmux_cache.http.connections.addresses import is_literal
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

AGREEING: Final = 4
AGREEING_AGAINST: Final = 6
"""Equal roots over new connections that prove a single server; more if a document contradicted its root."""

LOOKS: Final = 8
"""Most roots requested over new connections to find out whether there are several servers."""

PROBES: Final = 2
"""New connections per check once there are several servers."""

TRIES: Final = 16
"""Connections over which a document is requested until it counts as absent."""

TRIES_ALONE: Final = 6
"""The same if all roots suggest a single server."""

ADDRESSES_AGAIN: Final = 60.0
"""Seconds until unreachable addresses are tried again; doubled each time."""

ADDRESSES_AGAIN_MAX: Final = 3600.0

FAILURES_MAX: Final = 3
"""How many of these may fail for other reasons."""

FORMER_SECONDS: Final = 600.0
"""Seconds for which a replaced root is remembered."""

FORMER_MAX: Final = 16

UNASKED_SECONDS: Final = 1.0
"""Seconds after a search found one server in which contradictions start no other search."""

VERSIONS: Final = 2
"""Equal versions required over the connection of a root."""

_NOBODY: Final = Failure(Cause.NOT_FOUND, "no server of the backend has the document")

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class _Answer:
    root: BackendRoot
    version: str | None


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers of one server."""

    root: BackendRoot
    versions: frozenset[str | None] = frozenset()
    asked: int = 0
    """Number of requests for its version."""

    def version(self) -> str | None:
        """The version, if it was equal each time and requested often enough."""
        return next(iter(self.versions)) if len(self.versions) == 1 and self.asked >= VERSIONS else None


class Peers:
    """The servers of one backend, by name or recognized by their roots. Lives on one event loop."""

    def __init__(
        self,
        connect: Mapping[str, NewClient],
        *,
        has_addresses: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect``: by URL. ``has_addresses``: whether, with a single URL, each address of its host may
        belong to a server."""
        self._new_client = next(iter(connect.values()))
        self._connect = connect
        self._listed = ListedServers(connect, now=now) if len(connect) > 1 else None
        """None while at most one server is known by name."""
        self._has_addresses = has_addresses and len(connect) == 1
        self._is_named = not is_literal(URL(next(iter(connect)), encoded=True).raw_host or "")
        self._addresses: BackendAddresses | None = None
        self._addresses_again = 0.0
        self._addresses_pause = ADDRESSES_AGAIN
        self._now = now
        self._seen: Sightings[_Answers] = Sightings(now)
        self._former: deque[tuple[Offers, float]] = deque(maxlen=FORMER_MAX)
        self._is_per_request = False
        """Whether one connection reaches several servers, so consecutive answers may differ in origin."""
        self._are_hidden = False
        """Whether there are several servers, distinguished by their roots."""
        self._looking = asyncio.Lock()
        self._alone_until = 0.0

    @property
    def are_listed(self) -> bool:
        """Whether several are known by name."""
        return self._listed is not None and self._listed.are_several

    @property
    def are_known(self) -> bool:
        """Whether there is more than one server."""
        return self._are_hidden or self.are_listed

    def servers(self) -> tuple[BackendServer, ...]:
        """The servers that answered, highest rank first; empty if there is only one."""
        if self._listed is not None and self._listed.are_several:
            return self._listed.known()
        if not self._are_hidden or not self._seen:
            return ()
        seen = [(name, each.root.offers, each.version()) for name, each in self._seen.items()]
        is_versioned = not self._is_per_request and all(version for _, _, version in seen)
        servers = (
            BackendServer(name, offers, version if is_versioned else None) for name, offers, version in seen
        )
        return tuple(sorted(servers, key=lambda each: each.rank, reverse=True))

    async def find(self, backend: Backend) -> None:
        """Determine the servers from the current addresses of the backend."""
        has_slices = backend.found is not None and bool(backend.found.servers)
        if not self._has_addresses or not (has_slices or self._is_named or self._listed):
            return
        self._addresses = self._addresses or BackendAddresses(now=self._now)
        found = await self._addresses.of(backend)
        if len(found) < 2:
            if self._listed is not None:
                await self._listed.close()
                self._listed = None
            return
        if self._listed is None:
            self._listed = ListedServers(self._connect, now=self._now)
        await self._listed.keep(found)
        if not self.are_listed and self._now() >= self._addresses_again:
            await self._listed.look()
            self._addresses_again = self._now() + self._addresses_pause
            self._addresses_pause = min(ADDRESSES_AGAIN_MAX, 2 * self._addresses_pause)
        if self.are_listed:
            self._addresses_pause = ADDRESSES_AGAIN
            self._are_hidden = False
            self._seen.clear()

    async def settled(self, root: BackendRoot, held: BackendRoot | None) -> BackendRoot:
        """What the backend offers, given the roots of its usual connection: this one and the previous one."""
        if held is not None and not self.are_known and own_offers(root) != own_offers(held):
            is_back = self._was_former(own_offers(root))
            if is_back or held.offers.keys() - root.offers.keys():
                await self._look(root, agreeing=AGREEING)
            self._former.append((own_offers(held), self._now()))
        return self._united(root) if self.are_known else root

    async def current(self) -> BackendRoot | Failure:
        """What the servers offer now, over new connections; a Failure if all of these fail."""
        if self._listed is not None and self._listed.are_several:
            failure = await self._listed.look()
            return failure or BackendRoot(union_of(self.servers()), None, self._listed.notes)
        # Concurrently, so that a hanging server delays the others by its own timeout only.
        answers = await asyncio.gather(*(self._read() for _ in range(PROBES)))
        found = [answer for answer in answers if isinstance(answer, BackendRoot)]
        self._seen.expire(outgrown=self._outgrown())
        self._are_hidden = len(self._seen) > 1
        if not found:
            return next(answer for answer in answers if isinstance(answer, Failure))
        united = self._united(found[0])
        failed = (
            f"one of its servers: {each.cause}: {each.detail}"
            for each in answers
            if isinstance(each, Failure)
        )
        if not self._are_hidden:
            self._seen.clear()
        return replace(united, ignored=(*united.ignored, *failed))

    async def document(
        self,
        group_version: GroupVersion,
        hash: Hash,
        *,
        client: BackendClient,
        held: BackendRoot | None,
        accept_gzip: bool,
    ) -> Payload | MovedDocument | Failure:
        """A document under this hash from any server that has it. ``client``: of the usual connection;
        ``held``: what was published."""
        if self._listed is not None and self._listed.are_several:
            answer = await first_document(
                self._listed.holders(group_version, hash, accept_gzip=accept_gzip), failures_max=FAILURES_MAX
            )
            return answer or Failure(Cause.NOT_FOUND, "no server of the backend lists the document")
        usual = partial(client.document, group_version, hash=hash, accept_gzip=accept_gzip)
        other = partial(self._document_anew, group_version, hash, accept_gzip=accept_gzip)
        if not self._are_hidden:
            answer = await first_document([usual], failures_max=1)
            assert answer is not None
            if isinstance(answer, Payload) or not contradicts(answer) or held is None:
                return answer
            if self._now() >= self._alone_until:
                await self._look(held, agreeing=AGREEING_AGAINST)
            if not self._are_hidden:
                # The root listed it a moment ago: many roots may agree by chance.
                again = await first_document([other] * TRIES_ALONE, failures_max=1)
                return again if isinstance(again, Payload) else answer
        elif not any(each.root.offers.get(group_version) == hash for _, each in self._seen.items()):
            return await first_document([usual], failures_max=1) or _NOBODY
        return await first_document([usual, *[other] * TRIES], failures_max=FAILURES_MAX) or _NOBODY

    async def close(self) -> None:
        if self._listed is not None:
            await self._listed.close()

    async def each(
        self, ask: Callable[[BackendClient], Awaitable[Answered]]
    ) -> list[tuple[str | None, Answered]]:
        """Answers with the name of each listed server, or over as many new connections as each check uses."""

        async def asked() -> Answered:
            async with fresh_client(self._new_client) as client:
                return await ask(client)

        if self._listed is not None and self._listed.are_several:
            return list((await self._listed.each(ask)).items())
        return [(None, answer) for answer in await asyncio.gather(*(asked() for _ in range(PROBES)))]

    async def _document_anew(
        self, group_version: GroupVersion, hash: Hash, *, accept_gzip: bool
    ) -> Payload | MovedDocument | NotModified | Failure:
        async with fresh_client(self._new_client) as client:
            return await client.document(group_version, hash=hash, accept_gzip=accept_gzip)

    async def _look(self, root: BackendRoot, *, agreeing: int) -> None:
        """Find out whether servers other than the one with ``root`` answer; ``agreeing`` equal roots prove a
        single one. Concurrent calls share one search."""
        before = self._alone_until
        async with self._looking:
            if self.are_known or self._alone_until != before:
                return  # another call has searched meanwhile
            names = [digest_of_own(root)]
            for _ in range(LOOKS):
                answer = await self._asked()
                if isinstance(answer, Failure):
                    continue
                names.append(digest_of_own(answer.root))
                self._note(names[-1], answer)
                if _goes_back(names):
                    break
                if len(names) > agreeing and len({*names[-agreeing:]}) == 1:
                    break
            if _goes_back(names):
                if names.count(names[0]) == 1:
                    self._seen.forget(names[0])  # the previous root belongs to no server any more
                self._are_hidden = len(self._seen) > 1
                await self._settle_versions()
            else:
                self._seen.clear()
                # A shorter search leaves a doubt, which a contradiction renews.
                if agreeing == AGREEING_AGAINST:
                    self._alone_until = self._now() + UNASKED_SECONDS

    async def _settle_versions(self) -> None:
        """Continue until each version is known, so that learning a version later does not change
        precedence."""
        for _ in range(LOOKS):
            if self._is_per_request or all(answers.asked >= VERSIONS for _, answers in self._seen.items()):
                return
            await self._read()

    async def _read(self) -> BackendRoot | Failure:
        answer = await self._asked()
        if isinstance(answer, Failure):
            return answer
        self._note(digest_of_own(answer.root), answer)
        return answer.root

    async def _asked(self) -> _Answer | Failure:
        """A root over a new connection, and the version of the server that answered."""
        async with fresh_client(self._new_client) as client:
            root = await client.root()
            if isinstance(root, NotModified):
                return Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
            if isinstance(root, Failure) or self._is_per_request:
                return root if isinstance(root, Failure) else _Answer(root, None)
            version = await client.discovery("/version", JSON)
            again = await client.root(etag=root.etag)
            self._is_per_request |= isinstance(again, BackendRoot) and digest_of_own(again) != digest_of_own(
                root
            )
            return _Answer(root, version_in(version))

    def _note(self, name: str, answer: _Answer) -> None:
        last = self._seen.get(name) or _Answers(answer.root)
        self._seen.note(name, _Answers(answer.root, last.versions | {answer.version}, last.asked + 1))

    def _united(self, root: BackendRoot) -> BackendRoot:
        servers = self.servers()
        offers: Offers = union_of(servers) if servers else root.offers
        return BackendRoot(offers, None, root.ignored)

    def _outgrown(self) -> list[str]:
        """Roots that lack only some of what another of the same release has: a server's that has started
        since, which the union does not need."""
        seen = [(name, each, own_offers(each.root)) for name, each in self._seen.items()]
        return [
            name
            for name, each, offers in seen
            if any(
                each.versions & other.versions - {None} and offers.items() < others.items()
                for _, other, others in seen
            )
        ]

    def _was_former(self, offers: Offers) -> bool:
        now = self._now()
        return any(offers == former and now - moment < FORMER_SECONDS for former, moment in self._former)


def _goes_back(names: list[str]) -> bool:
    """Whether a root was seen, then another, then the first again."""
    return any(
        names[first] in names[second + 1 :]
        for first in range(len(names))
        for second in range(first + 1, len(names))
        if names[second] != names[first]
    )

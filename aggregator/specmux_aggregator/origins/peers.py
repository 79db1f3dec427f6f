"""The servers of one backend: listed in its configuration, or hidden by one address, where a balancer hands
connections, or requests, to several of them.

Hidden ones are told apart by their roots. Two are known once one root was seen, then another, then the first
again: a server that changes does not go back. From then on each check asks by new connections, which the
balancer spreads, and what the servers offer together is published. Where there is one server nothing more is
asked, but for four roots when one seems to have lost something.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.servers import BackendServer, Offers, digest_of, git_version, union_of
from specmux_aggregator.origins.sightings import Sightings
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, MovedDocument, NotModified, Payload
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

AGREEING: Final = 4
AGREEING_AGAINST: Final = 6
"""Roots by new connections that are all alike, after which there is one server; more where a document
contradicted its root."""

LOOKS: Final = 8
"""Roots by new connections that are asked for, at most, to find out whether there are several servers."""

PROBES: Final = 2
"""New connections of each check, once there are several."""

TRIES: Final = 16
"""Connections by which a document is asked for, before it is believed that no server has it."""

FAILURES_MAX: Final = 3
"""Of these, those that may fail for other reasons."""

FORMER_SECONDS: Final = 600.0
"""For so long a root that was replaced is known again."""

FORMER_MAX: Final = 16

UNASKED_SECONDS: Final = 1.0
"""After a look that found one server, contradictions cause no other for so long."""

VERSION_MAX: Final = 64
"""Characters of a version that are kept."""

VERSIONS: Final = 2
"""Times that a version must have come by the connection of a root, always the same."""

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class _Answer:
    root: BackendRoot
    version: str | None


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one server answered."""

    root: BackendRoot
    versions: frozenset[str | None] = frozenset()
    asked: int = 0
    """How often its version was."""

    def version(self, *, least: int) -> str | None:
        """The one that came each time, ``least`` times at least."""
        return next(iter(self.versions)) if len(self.versions) == 1 and self.asked >= least else None


class Peers:
    """The servers behind one address, as far as their roots tell them apart. Lives on one event loop."""

    def __init__(
        self,
        connect: Mapping[str, Callable[[], BackendClient]],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect``: by URL, what makes a client with connections of its own."""
        self._connect = connect
        self.are_listed = len(connect) > 1
        self._clients = {url: make() for url, make in connect.items()} if self.are_listed else {}
        self._now = now
        self._seen: Sightings[_Answers] = Sightings(now)
        self._former: deque[tuple[Offers, float]] = deque(maxlen=FORMER_MAX)
        self._is_per_request = False
        """One connection leads to several servers: what comes by it one after the other is of no one."""
        self.are_known = self.are_listed
        """Whether there is more than one server."""
        self._looking = asyncio.Lock()
        self._alone_until = 0.0

    def servers(self) -> tuple[BackendServer, ...]:
        """Those that answered, the highest first; none where there is one alone."""
        if not self.are_known or not self._seen:
            return ()
        least = 1 if self.are_listed else VERSIONS
        seen = [(name, each.root.offers, each.version(least=least)) for name, each in self._seen.items()]
        is_versioned = not self._is_per_request and all(version for _, _, version in seen)
        servers = (
            BackendServer(name, offers, version if is_versioned else None) for name, offers, version in seen
        )
        return tuple(sorted(servers, key=lambda each: each.rank, reverse=True))

    async def settled(self, root: BackendRoot, held: BackendRoot | None) -> BackendRoot:
        """What the backend offers, given the root that its usual connection had, and the one before."""
        if held is not None and not self.are_known and root.offers != held.offers:
            is_back = self._was_former(root.offers)
            if is_back or held.offers.keys() - root.offers.keys():
                await self._look(root, agreeing=AGREEING)
            self._former.append((held.offers, self._now()))
        return self._united(root) if self.are_known else root

    async def current(self) -> BackendRoot | Failure:
        """What the servers offer now, asked by new connections; a Failure where all of these fail."""
        asked: list[str | None] = list(self._clients) or [None] * PROBES
        # At once: a server that hangs holds up what the others have by no more than its own time.
        answers = await asyncio.gather(*(self._read(url) for url in asked))
        found = [answer for answer in answers if isinstance(answer, BackendRoot)]
        self._seen.expire()
        self.are_known = self.are_listed or len(self._seen) > 1
        if not found:
            return next(answer for answer in answers if isinstance(answer, Failure))
        united = self._united(found[0])
        failed = (
            f"server {url}: {answer.cause}: {answer.detail}"
            for url, answer in zip(asked, answers, strict=True)
            if url is not None and isinstance(answer, Failure)
        )
        if not self.are_known:
            self._seen.clear()
        return replace(united, ignored=(*united.ignored, *failed))

    async def document(
        self,
        group_version: GroupVersion,
        hash: Hash,
        contradiction: MovedDocument | Failure,
        held: BackendRoot | None,
    ) -> Payload | MovedDocument | Failure:
        """A document that the usual connection does not have under this hash, from the server that has it.

        ``held``: what was published. The contradiction stands where no server offers the hash.
        """
        if self.are_listed:
            return await self._listed_document(group_version, hash, contradiction)
        if not self.are_known and held is not None and self._now() >= self._alone_until:
            await self._look(held, agreeing=AGREEING_AGAINST)
        if not any(answers.root.offers.get(group_version) == hash for _, answers in self._seen.items()):
            return contradiction
        failures = 0
        for _ in range(TRIES):
            async with self._connection() as client:
                answer = await client.document(group_version, hash=hash, accept_gzip=True)
            if isinstance(answer, Payload):
                return answer
            if isinstance(answer, Failure) and answer.cause is not Cause.NOT_FOUND:
                failures += 1
                if failures == FAILURES_MAX:
                    return answer
        return contradiction

    async def _listed_document(
        self, group_version: GroupVersion, hash: Hash, contradiction: MovedDocument | Failure
    ) -> Payload | MovedDocument | Failure:
        answer: Payload | MovedDocument | NotModified | Failure = contradiction
        for url, answers in self._seen.items():
            if answers.root.offers.get(group_version) == hash:
                answer = await self._clients[url].document(group_version, hash=hash, accept_gzip=True)
                if isinstance(answer, Payload):
                    break
        return contradiction if isinstance(answer, NotModified) else answer

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def each(self, ask: Callable[[BackendClient], Awaitable[Answered]]) -> list[Answered]:
        """Answers of each listed server, or by as many new connections as each check asks by."""

        async def asked(url: str | None) -> Answered:
            async with self._connection(url) as client:
                return await ask(client)

        return await asyncio.gather(*(asked(url) for url in self._clients or [None] * PROBES))

    async def _look(self, root: BackendRoot, *, agreeing: int) -> None:
        """Find out whether other servers than the one with ``root`` answer; after ``agreeing`` equal roots
        there is one alone. One look serves all who wait."""
        before = self._alone_until
        async with self._looking:
            if self.are_known or self._alone_until != before:
                return  # another has looked meanwhile
            names = [digest_of(root.offers)]
            for _ in range(LOOKS):
                answer = await self._asked()
                if isinstance(answer, Failure):
                    continue
                names.append(digest_of(answer.root.offers))
                self._note(names[-1], answer)
                if _goes_back(names):
                    break
                if len(names) > agreeing and len({*names[-agreeing:]}) == 1:
                    break
            if _goes_back(names):
                if names.count(names[0]) == 1:
                    self._seen.forget(names[0])  # what was held is no server's any more
                self.are_known = len(self._seen) > 1
                await self._settle_versions()
            else:
                self._seen.clear()
                # A shorter look leaves a doubt, which a contradiction renews.
                if agreeing == AGREEING_AGAINST:
                    self._alone_until = self._now() + UNASKED_SECONDS

    async def _settle_versions(self) -> None:
        """Ask on until each version is known, so that what wins does not change when it comes to be."""
        for _ in range(LOOKS):
            if self._is_per_request or all(answers.asked >= VERSIONS for _, answers in self._seen.items()):
                return
            await self._read(None)

    async def _read(self, url: str | None) -> BackendRoot | Failure:
        answer = await self._asked(url)
        if isinstance(answer, Failure):
            return answer
        self._note(url or digest_of(answer.root.offers), answer)
        return answer.root

    async def _asked(self, url: str | None = None) -> _Answer | Failure:
        """A root of a listed server, or by a new connection, and the version of the server at its end."""
        async with self._connection(url) as client:
            root = await client.root()
            if isinstance(root, NotModified):
                return Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
            if isinstance(root, Failure) or self._is_per_request:
                return root if isinstance(root, Failure) else _Answer(root, None)
            version = await client.discovery("/version", JSON)
            if url is None:
                again = await client.root(etag=root.etag)
                self._is_per_request |= isinstance(again, BackendRoot) and again.offers != root.offers
            return _Answer(root, _version_in(version))

    def _note(self, name: str, answer: _Answer) -> None:
        last = self._seen.get(name)
        if last is None or last.root.offers != answer.root.offers:
            last = _Answers(answer.root)
        self._seen.note(name, _Answers(answer.root, last.versions | {answer.version}, last.asked + 1))

    def _united(self, root: BackendRoot) -> BackendRoot:
        servers = self.servers()
        offers: Offers = union_of(servers) if servers else root.offers
        return BackendRoot(offers, None, root.ignored)

    def _was_former(self, offers: Offers) -> bool:
        now = self._now()
        return any(offers == former and now - moment < FORMER_SECONDS for former, moment in self._former)

    @asynccontextmanager
    async def _connection(self, url: str | None = None) -> AsyncIterator[BackendClient]:
        if url is not None:
            yield self._clients[url]
            return
        client = next(iter(self._connect.values()))()
        try:
            yield client
        finally:
            await client.close()


def _goes_back(names: list[str]) -> bool:
    """Whether a root was seen, then another, then the first again."""
    return any(
        names[first] in names[second + 1 :]
        for first in range(len(names))
        for second in range(first + 1, len(names))
        if names[second] != names[first]
    )


def _version_in(answer: Payload | NotModified | Failure) -> str | None:
    if not isinstance(answer, Payload) or answer.coding is not Coding.IDENTITY:
        return None
    version = git_version(answer.body)
    return None if version is None else version[:VERSION_MAX]

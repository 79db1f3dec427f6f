"""One server that is known by name, or by its address. The address may hide several itself (a balancer's).

Two are behind it once its root went back to an earlier one and new connections see another at the same time:
a server alone may go back, too (a definition that comes and goes). From then on it stands for what they offer
together, until one of them was not seen for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from specmux_aggregator.backend_sources.hedge import DocumentAnswer
from specmux_aggregator.backend_sources.shared_documents import digest_of_own
from specmux_aggregator.backend_sources.sightings import Sightings
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.server_union import BackendServer, Hash, Offers, union_of
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, fresh_client
from specmux_converters.group_versions import GroupVersion

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

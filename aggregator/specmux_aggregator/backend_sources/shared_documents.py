"""``apis`` and ``version``: documents that every apiserver publishes under the same names.

An aggregating apiserver relays any of them, a different one at each request, so its root flaps. Here the
apiserver's own are used: those whose ``info`` equals that of REFERENCE. The choice depends on content alone,
so all replicas agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash, Offer
from specmux_aggregator.model.server_union import digest_of
from specmux_aggregator.upstream.client import BackendClient, BackendRoot, Payload
from specmux_aggregator.upstream.responses import INLINE_MAX
from specmux_aggregator.workers.lowering import SharedDocument, shared_document
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

SHARED: Final = (GroupVersion("apis"), GroupVersion("version"))
REFERENCE: Final = GroupVersion("apis/apiregistration.k8s.io/v1")
"""Only an aggregating apiserver has it, and publishes it itself."""

ATTEMPTS: Final = 8
"""Requests for one document until the apiserver's own arrives; the other servers answer in proportion to
their number."""

FOREIGN_MAX: Final = 64
"""Hashes of other servers' documents that are remembered."""


@dataclass(frozen=True, slots=True)
class SettledDocuments:
    """The apiserver's own shared documents, and the gzip of new ones."""

    offers: Mapping[GroupVersion, Offer] = field(default_factory=lambda: MappingProxyType({}))
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))


def own_offers(root: BackendRoot) -> dict[GroupVersion, Hash | None]:
    """The part of a root that identifies a server: everything that does not flap."""
    shared = SharedDocuments.of(root)
    return {key: hash for key, hash in root.offers.items() if key not in shared}


def digest_of_own(root: BackendRoot) -> str:
    return digest_of(own_offers(root))


class SharedDocuments:
    """Separates an aggregating apiserver's own documents from those of the servers behind it."""

    def __init__(self, client: BackendClient, worker: Worker, *, limits: Limits) -> None:
        self._client = client
        self._worker = worker
        self._limits = limits
        self._reference: tuple[Hash, bytes] | None = None
        self._own: dict[GroupVersion, Offer] = {}
        self._foreign: set[Hash] = set()

    @staticmethod
    def of(root: BackendRoot) -> tuple[GroupVersion, ...]:
        """The group-versions of a root that any server may have published."""
        return tuple(key for key in SHARED if key in root.offers) if REFERENCE in root.offers else ()

    def is_settled(self, root: BackendRoot) -> bool:
        """Whether all of them are known."""
        return all(key in self._own for key in self.of(root))

    async def settle(self, root: BackendRoot) -> SettledDocuments:
        """The offers that replace the root's entries; entries that cannot be decided now are left out."""
        publisher = await self._publisher(root)
        bodies: dict[GroupVersion, bytes] = {}
        for key in self.of(root):
            told, own = root.offers[key], self._own.get(key)
            if publisher is None or (own is not None and (own.hash == told or told in self._foreign)):
                continue
            found = await self._find(key, publisher)
            if found is not None and found.offer != own:
                self._own[key], bodies[key] = found.offer, found.gzip
        return SettledDocuments({key: self._own[key] for key in self.of(root) if key in self._own}, bodies)

    async def document(self, key: GroupVersion, hash: Hash) -> Payload | None:
        """The apiserver's own document with this hash, gzipped; None if unavailable."""
        own = self._own.get(key)
        if own is None or own.hash != hash or self._reference is None:
            return None
        found = await self._find(key, self._reference[1])
        if found is None or found.offer.hash != hash:
            return None
        return Payload(found.gzip, Coding.GZIP, JSON, None)

    async def _publisher(self, root: BackendRoot) -> bytes | None:
        """The publisher of the reference document, which is downloaded when it changes."""
        hash = root.offers.get(REFERENCE)
        if hash is None:
            return None
        if self._reference is None or self._reference[0] != hash:
            found = await self._download(REFERENCE, hash)
            if found is None:
                return None
            self._reference = (hash, found.publisher)
            self._foreign.clear()
        return self._reference[1]

    async def _find(self, key: GroupVersion, publisher: bytes) -> SharedDocument | None:
        for _ in range(ATTEMPTS):
            found = await self._download(key, None)
            if found is None or found.publisher == publisher:
                return found
            if len(self._foreign) < FOREIGN_MAX:
                self._foreign.add(found.offer.hash)
        return None

    async def _download(self, key: GroupVersion, hash: Hash | None) -> SharedDocument | None:
        answer = await self._client.document(key, hash=hash, accept_gzip=True)
        if not isinstance(answer, Payload):
            return None
        if len(answer.body) <= INLINE_MAX:
            small = replace(self._limits, max_bytes=min(INLINE_MAX, self._limits.max_bytes))
            found = shared_document(answer.body, answer.coding, limits=small)
            if found is not None:
                return found
        try:
            return await self._worker.run(shared_document, answer.body, answer.coding, limits=self._limits)
        except WorkerFailed:
            return None

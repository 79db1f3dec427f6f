"""``apis`` and ``version``: documents that every apiserver publishes under the same names.

An aggregating apiserver passes on any of them, another at each request, so that its root flaps. Here the
apiserver's own are taken: those whose ``info`` is that of REFERENCE. What they hold decides, so that all
replicas take the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decoded, encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.upstream.client import BackendClient, Payload, Root
from specmux_converters.document import Limits, content_hash, parse
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

SHARED: Final = (GroupVersion("apis"), GroupVersion("version"))
REFERENCE: Final = GroupVersion("apis/apiregistration.k8s.io/v1")
"""Nobody has it but an apiserver that aggregates, and it publishes it itself."""

ATTEMPTS: Final = 8
"""Requests for one document until it is the apiserver's own; others answer as often as there are servers."""

FOREIGN_MAX: Final = 64
"""Hashes of other servers' documents that are remembered."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The apiserver's own shared documents, and the gzip of those that are new."""

    offers: Mapping[GroupVersion, Offer] = field(default_factory=lambda: MappingProxyType({}))
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))


class SharedDocuments:
    """Tells an aggregating apiserver's own documents from those of the servers behind it."""

    def __init__(self, client: BackendClient, *, limits: Limits) -> None:
        self._client = client
        self._limits = limits
        self._reference: tuple[Hash, Any] | None = None
        self._own: dict[GroupVersion, Offer] = {}
        self._foreign: set[Hash] = set()

    @staticmethod
    def of(root: Root) -> tuple[GroupVersion, ...]:
        """The group-versions of a root that any server may have published."""
        return tuple(key for key in SHARED if key in root.offers) if REFERENCE in root.offers else ()

    def is_settled(self, root: Root) -> bool:
        """Whether all of them are known."""
        return all(key in self._own for key in self.of(root))

    async def settle(self, root: Root) -> Settled:
        """What to offer in place of what the root says of them; without those that cannot be told now."""
        info = await self._info(root)
        bodies: dict[GroupVersion, bytes] = {}
        for key in self.of(root):
            told, own = root.offers[key], self._own.get(key)
            if info is None or (own is not None and (own.hash == told or told in self._foreign)):
                continue
            found = await self._find(key, info)
            if found is not None and found[0] != own:
                self._own[key], bodies[key] = found
        return Settled({key: self._own[key] for key in self.of(root) if key in self._own}, bodies)

    async def document(self, key: GroupVersion, hash: Hash) -> Payload | None:
        """The apiserver's own document with this hash, as gzip; None where it cannot be had."""
        own = self._own.get(key)
        if own is None or own.hash != hash or self._reference is None:
            return None
        found = await self._find(key, self._reference[1])
        if found is None or found[0].hash != hash:
            return None
        return Payload(found[1], Coding.GZIP, JSON, None)

    async def _info(self, root: Root) -> Any:
        """``info`` of the reference, which is downloaded when it is another one."""
        hash = root.offers.get(REFERENCE)
        if hash is None:
            return None
        if self._reference is None or self._reference[0] != hash:
            plain = await self._plain(REFERENCE, hash)
            info = None if plain is None else self._info_in(plain)
            if info is None:
                return None
            self._reference = (hash, info)
            self._foreign.clear()
        return self._reference[1]

    async def _find(self, key: GroupVersion, info: Any) -> tuple[Offer, bytes] | None:
        for _ in range(ATTEMPTS):
            plain = await self._plain(key, None)
            if plain is None:
                return None
            hash = Hash(content_hash(plain))
            if self._info_in(plain) == info:
                offer = Offer(hash=hash, provenance=Provenance.NATIVE, size=len(plain))
                return offer, encoded(plain, Coding.GZIP)
            if len(self._foreign) < FOREIGN_MAX:
                self._foreign.add(hash)
        return None

    async def _plain(self, key: GroupVersion, hash: Hash | None) -> bytes | None:
        answer = await self._client.document(key, hash=hash, accept_gzip=True)
        if not isinstance(answer, Payload):
            return None
        try:
            return decoded(answer.body, answer.coding, max_bytes=self._limits.max_bytes)
        except (BadCoding, TooLarge):
            return None

    def _info_in(self, plain: bytes) -> Any:
        try:
            return parse(plain, limits=self._limits).get("info")
        except ConverterError:
            return None

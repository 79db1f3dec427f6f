"""Lower OpenAPI 3.1 from an apiserver to 3.0 when it is fetched.

The hash remains the apiserver's, as for Protobuf and CBOR: it identifies the document, and replicas agree
without fetching it. Losses are known once a document was fetched; the next check publishes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation, Offer
from specmux_aggregator.upstream.client import Payload
from specmux_aggregator.workers.lowering import LoweredDocument, lowered_document
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON


class LoweredDocuments:
    """Lowers the documents of one origin, and remembers the losses."""

    def __init__(self, worker: Worker, *, limits: Limits) -> None:
        self._worker = worker
        self._limits = limits
        self._offers: dict[GroupVersion, Offer] = {}
        self._faults: dict[GroupVersion, tuple[Hash, str]] = {}

    async def read(self, key: GroupVersion, hash: Hash, payload: Payload) -> Payload | Failure:
        """The payload to pass on under ``hash``, lowered if it is 3.1."""
        found = await self.lowered(payload)
        if found is None:
            return payload
        if isinstance(found, Failure):
            self._faults[key] = hash, f"{key}: {found.cause}: {found.detail}"
            return found
        self._offers[key] = found.offer(hash)
        return Payload(found.gzip, Coding.GZIP, JSON, payload.etag)

    async def lowered(self, payload: Payload) -> LoweredDocument | Failure | None:
        """None: it is not 3.1 after all."""
        try:
            return await self._worker.run(lowered_document, payload.body, payload.coding, limits=self._limits)
        except WorkerFailed as error:
            return build_failure(error)

    def offer(self, key: GroupVersion, hash: Hash) -> Offer | None:
        """The offer with losses, if it was lowered."""
        held = self._offers.get(key)
        return held if held is not None and held.hash == hash else None

    def faults(self, hashes: Mapping[GroupVersion, Hash | None]) -> list[str]:
        """Why some of these could not be lowered."""
        return [fault for key, (hash, fault) in self._faults.items() if hashes.get(key) == hash]

    def are_told(self, last: Observation) -> bool:
        """Whether the published observation includes all of this."""
        offers = {
            key: offer for key, offer in self._offers.items() if self._is_offered(last, key, offer.hash)
        }
        faults = {fault for key, (hash, fault) in self._faults.items() if self._is_offered(last, key, hash)}
        return all(last.offers[key] == offer for key, offer in offers.items()) and faults <= set(last.notes)

    def keep_only(self, keys: Collection[GroupVersion]) -> None:
        """Forget those that are no longer listed."""
        for held in (self._offers, self._faults):
            for key in [key for key in held if key not in keys]:
                del held[key]

    @staticmethod
    def _is_offered(last: Observation, key: GroupVersion, hash: Hash) -> bool:
        offer = last.offers.get(key)
        return offer is not None and offer.hash == hash

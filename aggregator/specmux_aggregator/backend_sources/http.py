"""An apiserver as origin: OpenAPI v3 if it has it, else its Swagger 2.0 document converted.

Decided at every check. If v3 is missing once after it was there, the server is assumed to restart (the
reference gives up v3 until the APIService is deleted); if it is missing twice, v2 is tried; and a backend on
v2 is asked for v3 again from time to time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.backend_sources.servers import ServerSet
from specmux_aggregator.backend_sources.shared_documents import SharedDocuments
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Cause, Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.upstream.client import BackendRoot, MovedDocument, NotModified, Payload
from specmux_aggregator.workers.integrity import fault_of
from specmux_aggregator.workers.lowering import (
    LoweredDocument,
    begins_with_30,
    coded_may_be_later,
    lower_document,
    may_be_later,
)
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits, content_hash
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import build_swagger
else:
    build_swagger = NamedFunction("specmux_aggregator.workers.documents:build_swagger")

SCANNED_AT_ONCE: Final = 1536 * 1024
"""Bytes that are searched for a version on the event loop: a millisecond, and a thread a fifth as long."""

# The hash remains the apiserver's, as for Protobuf and CBOR: it identifies the document, and replicas
# agree without fetching it. Losses are known once a document was fetched; the next check publishes them.


class LoweredDocuments:
    """Lowers the documents of one origin, and remembers the losses."""

    def __init__(self, worker: Worker, *, limits: Limits) -> None:
        self._worker = worker
        self._limits = limits
        self._offers: dict[GroupVersion, Offer] = {}
        self._faults: dict[GroupVersion, tuple[Hash, str]] = {}

    async def read(self, key: GroupVersion, hash: Hash, payload: Payload) -> Payload | Failure:
        """The payload to pass on under ``hash``, lowered if it is 3.1."""
        found = await self.lower(payload)
        if found is None:
            return payload
        if isinstance(found, Failure):
            self._faults[key] = hash, f"{key}: {found.cause}: {found.detail}"
            return found
        self._offers[key] = found.offer(hash)
        return Payload(found.gzip, Coding.GZIP, JSON, payload.etag)

    async def lower(self, payload: Payload) -> LoweredDocument | Failure | None:
        """None: it is not 3.1 after all."""
        try:
            return await self._worker.run(lower_document, payload.body, payload.coding, limits=self._limits)
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


UNREACHABLE: Final = frozenset(
    {
        Cause.REFUSED,
        Cause.UNRESOLVED,
        Cause.RESET,
        Cause.TIMEOUT,
        Cause.BAD_TLS,
        Cause.THROTTLED,
        Cause.NO_WORKER,
    }
)
"""Causes that say nothing about an individual document."""


@dataclass(frozen=True, slots=True)
class _UnhashedDocument:
    """A native document that the root lists without a hash, as last downloaded."""

    offer: Offer
    etag: str | None


class HTTPOrigin:
    """An apiserver. The creator closes it."""

    def __init__(
        self,
        backend: Backend,
        servers: ServerSet,
        worker: Worker,
        *,
        limits: DocumentLimits,
        max_group_versions: int,
        v3_probe_interval: float,
    ) -> None:
        self._backend = backend
        self._servers = servers
        self._client = servers.client
        self._worker = worker
        self._limits = limits
        self._max_group_versions = max_group_versions
        self._v3_probe_interval = v3_probe_interval
        self._root: BackendRoot | None = None
        self._swagger_etag: str | None = None
        self._has_delivered = False
        self._missed_v3 = 0
        self._next_v3_probe = 0.0
        self._unhashed: dict[GroupVersion, _UnhashedDocument] = {}
        self._shared = SharedDocuments(servers.client, worker, limits=limits)
        self._lowered: LoweredDocuments | None = None
        """None until a document may have been 3.1."""

    async def observe(self, last: Observation) -> Outcome:
        speaks_v2 = last.dialect is BackendKind.V2
        if self._backend.kind is BackendKind.V2 or (speaks_v2 and time.monotonic() < self._next_v3_probe):
            return await self._observe_v2(last)
        outcome = await self._observe_v3(last)
        if (
            not (isinstance(outcome, Failure) and outcome.cause is Cause.NOT_FOUND)
            or self._backend.kind is BackendKind.V3
        ):
            return outcome
        self._missed_v3 += 1
        if last.dialect is BackendKind.V3 and self._missed_v3 < 2:
            return outcome
        self._next_v3_probe = time.monotonic() + self._v3_probe_interval
        return await self._observe_v2(last)

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        own = await self._shared.document(group_version, hash)
        if own is not None:
            return own
        unhashed = self._unhashed.get(group_version)
        is_unhashed = unhashed is not None and unhashed.offer.hash == hash
        if is_unhashed:
            answer = await self._client.document(group_version, hash=None, accept_gzip=accept_gzip)
        else:
            answer = await self._servers.document(group_version, hash, accept_gzip=accept_gzip)
        if isinstance(answer, NotModified):
            return Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
        if isinstance(answer, Payload) and await self._may_be_later_than_30(answer):
            answer = await self._lowering().read(group_version, hash, answer)
        if is_unhashed and isinstance(answer, Payload) and not await self._hashes_to(hash, answer):
            return MovedDocument(None)
        return answer

    async def close(self) -> None:
        await self._servers.close()

    def _is_settled(self, root: BackendRoot, last: Observation) -> bool:
        """Whether an unchanged root leaves nothing to fetch or report."""
        is_known = None not in root.offers.values() and self._shared.is_settled(root)
        return is_known and (self._lowered is None or self._lowered.are_told(last))

    def _lowering(self) -> LoweredDocuments:
        if self._lowered is None:
            self._lowered = LoweredDocuments(self._worker, limits=self._limits)
        return self._lowered

    async def _may_be_later_than_30(self, payload: Payload) -> bool:
        body, coding = payload.body, payload.coding
        if begins_with_30(body, coding):
            return False
        if coding is Coding.IDENTITY and len(body) <= SCANNED_AT_ONCE:
            return may_be_later(body)
        return await asyncio.to_thread(coded_may_be_later, body, coding, limits=self._limits)

    async def _hashes_to(self, hash: Hash, payload: Payload) -> bool:
        """Whether the content has this hash, which was computed here: no backend says which document it
        identifies."""
        try:
            offer, _ = await asyncio.to_thread(self._name_by_content, payload, None, is_packed=False)
        except (BadCoding, TooLarge):
            return True  # a fault is reported where all documents are checked
        return offer.hash == hash

    async def _observe_v3(self, last: Observation) -> Outcome:
        held = self._root if last.dialect is BackendKind.V3 else None
        root = await self._servers.root(last.backend)
        if isinstance(root, Failure):
            return root
        root = root.of(last.backend)
        self._missed_v3 = 0
        if root == held and self._servers.servers() == last.servers and self._is_settled(root, last):
            return UnchangedOffers()
        outcome = await self._with_unhashed(last, root)
        if isinstance(outcome, BackendOffers):
            # Only now: a root that could not be published must not be "not modified" at the next check.
            self._root = root
        return outcome

    async def _with_unhashed(self, last: Observation, root: BackendRoot) -> Outcome:
        """Everything that the root lists. A document without a hash that is unavailable keeps its last state,
        or is left out, and is retried at the next check, without affecting the others."""
        offers: dict[GroupVersion, Offer] = {}
        bodies: dict[GroupVersion, bytes] = {}
        unhashed: dict[GroupVersion, _UnhashedDocument] = {}
        notes = list(root.ignored)
        lowered = self._lowered
        if lowered is not None:
            lowered.keep_only(root.offers)
            notes += lowered.faults(root.offers)
        shared = await self._shared.settle(root)
        offers.update(shared.offers)
        bodies.update(shared.bodies)
        for group_version, hash in root.offers.items():
            if group_version in self._shared.of(root):
                continue
            if hash is not None:
                held_offer = None if lowered is None else lowered.offer(group_version, hash)
                known = held_offer or last.offers.get(group_version)
                fresh = Offer(hash=hash, provenance=Provenance.NATIVE)
                offers[group_version] = known if known is not None and known.hash == hash else fresh
                continue
            kept = self._unhashed.get(group_version)
            if kept is not None and last.offers.get(group_version) != kept.offer:
                kept = None  # its bytes were dropped when another dialect was published
            downloaded = await self._download_unhashed(group_version, kept)
            if isinstance(downloaded, Failure):
                if downloaded.cause in UNREACHABLE:
                    return replace(downloaded, detail=f"{group_version}: {downloaded.detail}")
                notes.append(f"{group_version}: {downloaded.cause}: {downloaded.detail}")
                if last.dialect is BackendKind.V3 and group_version in last.offers:
                    offers[group_version] = last.offers[group_version]
                if kept is not None:
                    unhashed[group_version] = kept
                continue
            unhashed[group_version], body = downloaded
            offers[group_version] = unhashed[group_version].offer
            if body is not None:
                bodies[group_version] = body
        self._unhashed = unhashed
        return BackendOffers(BackendKind.V3, offers, bodies, tuple(notes), servers=self._servers.servers())

    async def _download_unhashed(
        self, group_version: GroupVersion, known: _UnhashedDocument | None
    ) -> tuple[_UnhashedDocument, bytes | None] | Failure:
        """A document without a hash gets its content hash. ``known``: as published; bytes are returned only
        for another one."""
        etag = known.etag if known else None
        answer = await self._client.document(group_version, hash=None, accept_gzip=True, etag=etag)
        match answer:
            case Failure():
                return answer
            case MovedDocument():
                return Failure(Cause.REDIRECTED, "a document without a hash redirects")
            case NotModified():
                return (known, None) if known else Failure(Cause.UNEXPECTED_STATUS, "304 to a plain request")
            case Payload(body, coding):
                pass
        try:
            fault = await self._worker.run(fault_of, body, coding, limits=self._limits)
        except WorkerFailed as error:
            return build_failure(error)
        if fault is not None:
            return fault
        if await self._may_be_later_than_30(answer):
            lowered = await self._lowering().lower(answer)
            if isinstance(lowered, Failure):
                return lowered
            if lowered is not None:
                offer = lowered.offer(lowered.hash)
                is_known = known is not None and known.offer == offer
                return _UnhashedDocument(offer, answer.etag), None if is_known else lowered.gzip
        offer, packed = await asyncio.to_thread(self._name_by_content, answer, known.offer if known else None)
        return _UnhashedDocument(offer, answer.etag), packed

    def _name_by_content(
        self, payload: Payload, known: Offer | None, *, is_packed: bool = True
    ) -> tuple[Offer, bytes | None]:
        """A document under its content hash, compressed unless known. zlib and SHA-512 release the GIL, so a
        thread is sufficient."""
        plain = decode_body(payload.body, payload.coding, max_bytes=self._limits.max_bytes)
        offer = Offer(hash=Hash(content_hash(plain)), provenance=Provenance.NATIVE, size=len(plain))
        if offer == known or not is_packed:
            return offer, None
        return offer, payload.body if payload.coding is Coding.GZIP else encode_body(plain, Coding.GZIP)

    async def _observe_v2(self, last: Observation) -> Outcome:
        is_v2 = last.dialect is BackendKind.V2
        payload = await self._client.swagger(etag=self._swagger_etag if is_v2 else None)
        match payload:
            case Failure():
                return payload
            case NotModified():
                return UnchangedOffers()
        held = (
            {key: offer.hash for key, offer in last.offers.items()} if is_v2 and self._has_delivered else {}
        )
        try:
            built = await self._worker.run(
                build_swagger,
                payload.body,
                payload.coding,
                owned=self._backend.group_versions,
                held=held,
                limits=self._limits,
                max_group_versions=self._max_group_versions,
            )
        except WorkerFailed as error:
            return build_failure(error)
        if isinstance(built, Failure):
            return built
        self._swagger_etag = payload.etag
        self._has_delivered = True
        return BackendOffers(
            BackendKind.V2,
            {item.group_version: item.offer for item in built},
            {item.group_version: item.gzip for item in built if item.gzip is not None},
        )

"""Derive the discovery of a backend without one from its documents, once per content.

A directory has only documents; an apiserver that answers neither ``/api`` nor ``/apis`` may still publish
documents.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Outcome,
    UnconfirmedResources,
)
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure, build_failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.upstream.client import MovedDocument
from specmux_aggregator.workers.built import Unencodable
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.media_types import JSON
from specmux_converters.resources import Resources

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import resources_in
else:
    resources_in = NamedFunction("specmux_aggregator.workers.documents:resources_in")

AT_HAND: Final = 0.2
"""Seconds within which a document is obtained that is in memory or on disk."""

CONCURRENT: Final = 8
"""Documents of a dead backend that are sought at a time."""


class Synthesis:
    """Derives the discovery of one backend."""

    def __init__(self, documents: DocumentRepository, worker: Worker, *, limits: DocumentLimits) -> None:
        self._documents = documents
        self._worker = worker
        self._limits = limits
        self._read: dict[tuple[GroupVersion, Hash], Resources] = {}

    async def tell(self, observation: Observation, *, unreachable: Failure | None = None) -> Outcome | None:
        """The discovery in the documents; None before the backend's first check.

        ``unreachable``: why the backend cannot be asked for a document; only stored documents count then.
        """
        if not observation.attempted:
            return None
        backend = observation.backend
        if observation.failure is not None and backend.kind.is_directory:
            return observation.failure
        owned = [key for key in observation.offers if split(key) is not None and backend.owns(key)]
        unread = [key for key in owned if key not in observation.resources]
        read: dict[GroupVersion, Resources | Failure] = {}
        rest = iter([DocumentKey(backend.name, key, observation.offers[key].hash) for key in unread])

        async def read_on() -> None:
            for key in rest:
                read[key.group_version] = await self._resources(key, unreachable)
                await asyncio.sleep(0)  # let others run: thousands of known documents need no waiting

        # One document at a time: they can be large, and the worker processes one at a time.
        await asyncio.gather(*(read_on() for _ in range(1 if unreachable is None else CONCURRENT)))
        self._read = {
            (key, observation.offers[key].hash): told
            for key, told in read.items()
            if not isinstance(told, Failure)
        }
        listings: dict[GroupVersion, Resources | UnconfirmedResources] = {}
        for key in owned:
            told = read.get(key, observation.resources.get(key, ()))
            listings[key] = UnconfirmedResources(told) if isinstance(told, Failure) else told
        return BackendListings(DiscoverySource.SYNTHESISED, listings)

    async def _resources(self, key: DocumentKey, unreachable: Failure | None) -> Resources | Failure:
        known = self._read.get((key.group_version, key.hash))
        if known is not None:
            return known
        try:
            async with asyncio.timeout(None if unreachable is None else AT_HAND):
                obtained = await self._documents.obtain(key, JSON, Coding.GZIP)
        except TimeoutError:
            return unreachable or Failure(Cause.TIMEOUT, "its document is not at hand")
        match obtained:
            case Failure():
                return obtained
            case MovedDocument() | Unencodable():
                return Failure(Cause.REDIRECTED, "its document changed meanwhile")
            case bytes():
                pass
        try:
            return await self._worker.run(
                resources_in, obtained, Coding.GZIP, key.group_version, limits=self._limits
            )
        except WorkerFailed as error:
            return build_failure(error)

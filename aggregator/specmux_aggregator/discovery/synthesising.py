"""Discovery of a backend that has none of its own: read off its documents, each once per content.

A directory has nothing else; an apiserver that answers neither ``/api`` nor ``/apis`` may still publish
documents.
"""

from __future__ import annotations

from typing import Protocol

from specmux_aggregator.api_resources import Resources, split
from specmux_aggregator.build import Refused
from specmux_aggregator.discovery.knowledge import Form, Outcome, Told, Unconfirmed
from specmux_aggregator.documents import Obtained
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.fetch import Moved
from specmux_aggregator.model import Cause, Coding, DocumentKey, Failure, Hash, Observation
from specmux_aggregator.resource_synthesis import resources_in
from specmux_aggregator.workers import Worker
from specmux_converters.document import Limits as DocumentLimits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, MediaType


class Documents(Protocol):
    """Where the bytes of documents come from (documents.py)."""

    async def obtain(self, key: DocumentKey, media_type: MediaType, coding: Coding) -> Obtained: ...


class Synthesis:
    """Reads one backend's documents."""

    def __init__(self, documents: Documents, worker: Worker, *, limits: DocumentLimits) -> None:
        self._documents = documents
        self._worker = worker
        self._limits = limits
        self._read: dict[tuple[GroupVersion, Hash], Resources] = {}

    async def tell(self, observation: Observation) -> Outcome | None:
        """What the documents tell; None before the backend was heard for the first time."""
        if not observation.attempted:
            return None
        backend = observation.backend
        if observation.failure is not None and backend.kind.is_directory:
            return observation.failure
        listings: dict[GroupVersion, Resources | Unconfirmed] = {}
        read: dict[tuple[GroupVersion, Hash], Resources] = {}
        for key, offer in observation.offers.items():
            if split(key) is None or not backend.owns(key):
                continue
            if key in observation.resources:
                listings[key] = observation.resources[key]
                continue
            document = DocumentKey(backend.name, key, offer.hash)
            found = self._read.get((key, offer.hash)) or await self._resources(document)
            if isinstance(found, Failure):
                listings[key] = Unconfirmed(found)
            else:
                listings[key] = read[key, offer.hash] = found
        self._read = read
        return Told(Form.SYNTHESISED, listings)

    async def _resources(self, key: DocumentKey) -> Resources | Failure:
        obtained = await self._documents.obtain(key, JSON, Coding.GZIP)
        match obtained:
            case Failure():
                return obtained
            case Moved() | Refused():
                return Failure(Cause.REDIRECTED, "its document changed meanwhile")
            case bytes():
                pass
        try:
            return await self._worker.run(
                resources_in, obtained, Coding.GZIP, key.group_version, limits=self._limits
            )
        except WorkerFailed as error:
            return Failure(Cause.BUILD_FAILED, str(error))

"""Templates that make documents of CustomResourceDefinitions match the cluster's release: extracted from a
document of its apiserver, and again when it changes.

Until then, and without such a document, the newest known ones are used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.kubernetes.cluster_backends import APISERVER
from specmux_aggregator.model.observation import Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.tasks import log_failure
from specmux_aggregator.workers.worker import Worker
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import read_templates
else:
    read_templates = NamedFunction("specmux_aggregator.workers.documents:read_templates")

logger = logging.getLogger(__name__)

SOURCE: Final = GroupVersion("apis/apps/v1")
"""Every cluster has it, and it contains all shared parts, including Scale."""

FIRST_READ: Final = 5.0
"""Most seconds for which the first build waits for them: documents built without would soon change."""

PAUSES: Final = (1.0, 5.0, 15.0, 60.0)
"""Seconds between attempts to get the document."""


class ClusterTemplates:
    """Follows the apiserver's publications. ``changed`` is called when the templates change."""

    def __init__(
        self,
        documents: DocumentRepository,
        worker: Worker,
        *,
        limits: Limits,
        has_apiserver: bool,
        changed: Callable[[], None],
    ) -> None:
        """``has_apiserver``: whether the apiserver is a backend, so that its documents are available."""
        self._documents = documents
        self._worker = worker
        self._limits = limits
        self._changed = changed
        self._templates = BUNDLED
        self.release: str | None = None
        """That the cluster's document tells ("v1.34"); None until it is read."""
        self._key: DocumentKey | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False
        self._is_known = asyncio.Event()
        if not has_apiserver:
            self._is_known.set()

    async def current(self) -> Templates:
        """The templates of the cluster, as far as known."""
        try:
            async with asyncio.timeout(FIRST_READ):
                await self._is_known.wait()
        except TimeoutError:
            self._is_known.set()
        return self._templates

    def follow(self, snapshot: Snapshot) -> None:
        """Extract them again if the document has changed."""
        if self._is_closed:
            return
        observation = snapshot.observations.get(APISERVER)
        if observation is None or not observation.attempted:
            return
        offer = observation.offers.get(SOURCE)
        if offer is None or offer.provenance is not Provenance.NATIVE:
            self._is_known.set()
            return
        key = DocumentKey(APISERVER, SOURCE, offer.hash)
        if key == self._key:
            return
        self._key = key
        if self._reading is not None:
            self._reading.cancel()
        self._reading = asyncio.create_task(self._read(key), name="templates")
        log_failure(self._reading, logger, "the templates of the cluster's documents are no longer read")

    async def close(self) -> None:
        self._is_closed = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, key: DocumentKey) -> None:
        for pause in (*PAUSES, None):
            body = await self._documents.obtain(key, JSON, Coding.GZIP)
            if isinstance(body, bytes):
                await self._take(body)
                return
            self._is_known.set()
            if pause is not None:
                await asyncio.sleep(pause)
        self._key = None  # try again at the next publication

    async def _take(self, body: bytes) -> None:
        try:
            read = await self._worker.run(read_templates, body, Coding.GZIP, limits=self._limits)
        except WorkerFailed as error:
            logger.warning("templates of OpenAPI specs of %s cannot be read: %s", SOURCE, error)
            read = None
        templates = read or self._templates
        is_other, self._templates = templates != self._templates, templates
        self.release = self.release if read is None else read.release
        self._is_known.set()
        if is_other:
            logger.info("OpenAPI specs of definitions follow the cluster's own release now")
            self._changed()

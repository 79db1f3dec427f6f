"""Check published documents against their standard, once per hash, apart from serving.

A document is checked after it is published, one at a time, in a process of the lowest priority that is killed
when it takes too long. The result is a value that pages and metrics read; nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import CheckSummary, DocumentKey, PublishedCheck, Snapshot
from specmux_aggregator.mounts import DOCUMENT_CHECK, NamedFunction
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

logger = logging.getLogger(__name__)

_CHECK: Final[NamedFunction[..., CheckSummary]] = NamedFunction(DOCUMENT_CHECK)

RETRY: Final = 30.0
"""Seconds before another attempt at a document that could not be fetched or whose process failed."""


class DocumentChecks:
    """Follows the publisher. ``run`` checks until its task is cancelled."""

    def __init__(self, documents: DocumentRepository, worker: Worker, *, limits: Limits) -> None:
        self._documents = documents
        self._worker = worker
        self._limits = limits
        self._published: dict[GroupVersion, DocumentKey] = {}
        self._known: dict[GroupVersion, PublishedCheck] = {}
        self._changed = asyncio.Event()

    @property
    def known(self) -> Mapping[GroupVersion, PublishedCheck]:
        """The results for what is published now, as far as it is checked."""
        return dict(self._known)

    @property
    def waiting(self) -> int:
        return len(self._published) - len(self._known)

    def follow(self, snapshot: Snapshot) -> None:
        """Note what is published; a document with an unchanged hash stays checked."""
        self._published = {
            key: DocumentKey(entry.owner, key, entry.offer.hash) for key, entry in snapshot.entries.items()
        }
        self._known = {
            key: check
            for key, check in self._known.items()
            if key in self._published and check.key.hash == self._published[key].hash
        }
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            wanted = [key for name, key in sorted(self._published.items()) if name not in self._known]
            for key in wanted:
                await self._look_at(key)
            if any(name not in self._known for name in self._published):
                await self._wait(RETRY)
            else:
                await self._changed.wait()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _look_at(self, key: DocumentKey) -> None:
        """Check one document; leaves it unknown if it cannot be fetched at present."""
        if self._published.get(key.group_version) != key:
            return
        body = await self._documents.obtain(key, JSON, Coding.GZIP)
        if not isinstance(body, bytes):
            return
        try:
            summary = await self._worker.run(_CHECK, body, key.group_version, limits=self._limits)
        except WorkerFailed as error:
            self._note(PublishedCheck(key, None, str(error)))
            return
        self._note(PublishedCheck(key, summary))

    def _note(self, check: PublishedCheck) -> None:
        key = check.key
        if self._published.get(key.group_version) != key:
            return
        self._known[key.group_version] = check
        if check.summary is None:
            logger.warning(
                "the OpenAPI spec of %s of backend %s could not be checked: %s",
                key.group_version,
                key.owner,
                check.reason,
            )
        elif check.summary.errors:
            logger.warning(
                "the OpenAPI spec of %s of backend %s does not keep to its standard: %d errors, such as %s",
                key.group_version,
                key.owner,
                check.summary.errors,
                check.summary.examples[0],
            )


def document_checks_of(
    settings: Settings, publisher: Publisher, documents: DocumentRepository, worker: Worker
) -> DocumentChecks | None:
    """New checks that follow what is published; None if they are off. The caller runs them."""
    if settings.documents.check == "off":
        return None
    checks = DocumentChecks(documents, worker, limits=settings.limits.of_documents)
    publisher.subscribe(checks.follow)
    return checks

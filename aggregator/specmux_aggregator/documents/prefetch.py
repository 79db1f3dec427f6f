"""Fetch the documents of a cluster's backends when they are published, so that an outage costs readers none.

One at a time, after everything that readers request. Documents are kept in memory within its budget, and in
the state directory if there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.model.observation import Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot

RETRY: Final = 30.0
"""Seconds before a failed document is requested again."""

SETTLE: Final = 1.0
"""Seconds to wait after a publication: readers come first, and only the last of several publications
counts."""


class DocumentPrefetch:
    """Follows the publisher. ``run`` fetches until its task is cancelled."""

    def __init__(
        self,
        documents: DocumentRepository,
        representations: Representations,
        *,
        is_wanted: Callable[[Snapshot, DocumentKey], bool],
        settle: float = SETTLE,
    ) -> None:
        """``is_wanted`` selects documents; they take at most half of the memory budget."""
        self._documents = documents
        self._representations = representations
        self._is_wanted = is_wanted
        self._settle = settle
        self._wanted: frozenset[DocumentKey] = frozenset()
        self._had: set[DocumentKey] = set()
        self._changed = asyncio.Event()

    def follow(self, snapshot: Snapshot) -> None:
        """Note what is published."""
        published = (
            DocumentKey(entry.owner, key, entry.offer.hash)
            for key, entry in snapshot.entries.items()
            if entry.offer.provenance is Provenance.NATIVE
        )
        self._wanted = frozenset(key for key in published if self._is_wanted(snapshot, key))
        self._had &= self._wanted
        if self._wanted - self._had:
            self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._settle)
            self._changed.clear()
            for key in sorted(self._wanted - self._had):
                if self._representations.is_half_full:
                    break
                if key in self._wanted and await self._documents.fetch(key):
                    self._had.add(key)
            if self._wanted - self._had and not self._representations.is_half_full:
                asyncio.get_running_loop().call_later(RETRY, self._changed.set)

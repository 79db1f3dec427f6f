"""The search index of a source: kept in the disk cache between commands, and changed by document.

It lies there as an entry of its source, so it is bounded, verified and removed as documents are. One that is
torn, of another release, or cannot be kept costs a new one, never an answer.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from specmux_aggregator.version import VERSION
from specmux_cache.errors import StoreError
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_tools.search_index.index import FieldIndex
from specmux_tools.search_index.stored import dump, load
from specmux_tools.sources.source import Source, UnreadSource, digest_of

NAME: Final = "/search"
"""Stands in an entry for a group-version, or the path of a resource."""
MEDIA_TYPE: Final = "application/vnd.specmux.search+json"


class SearchIndex:
    """The index of one source. ``directory``: the disk cache's; None keeps nothing."""

    def __init__(self, source: Source, directory: Path | None) -> None:
        self._source = source
        self._directory = directory
        self._index: FieldIndex | None = None
        self._state = ""
        self.unread: tuple[UnreadSource, ...] = ()
        """Documents that could not be used when they were last read."""

    def of(self, source: Source) -> None:
        """From now on by this source: the same, refreshed."""
        self._source = source

    def current(self) -> FieldIndex:
        """With all documents that the source has now. Raises SpecmuxError."""
        state = self._source.state()
        if self._index is None:
            self._index, self._state = self._read_kept_index() or (FieldIndex(), "")
        if not state or state != self._state:
            self._index = self._follow_source(self._index)
            self._state = "" if self.unread else state
            if self._state:
                self._keep(self._index, state)
        return self._index

    def _follow_source(self, index: FieldIndex) -> FieldIndex:
        hashes = self._source.hashes()
        for key in index.documents.keys() - hashes.keys():
            index.remove(key)
        if index.is_worn:
            index = FieldIndex()
        held = index.documents
        wanted = [
            key for key, hash in hashes.items() if not hash or key not in held or held[key].hash != hash
        ]
        if wanted:
            loaded = self._source.load(wanted, schemas_only=True)
            for key, document in loaded.documents.documents.items():
                index.put(key, document, hash=hashes[key] or digest_of(document))
            self.unread = loaded.unread
        return index

    def _key(self) -> Key | None:
        kept_as = self._source.kept_as
        return None if kept_as is None else Key(*kept_as, NAME, "", MEDIA_TYPE)

    def _read_kept_index(self) -> tuple[FieldIndex, str] | None:
        """The index in the cache, and the state of the source that it describes."""
        key = self._key()
        if key is None or self._directory is None:
            return None
        try:
            with DiskStore.open(self._directory) as store:
                found = store.get(key)
        except StoreError:
            return None
        if found is None or found.row.metadata.get("release") != VERSION:
            return None
        index, state = load(found.body), found.row.metadata.get("state")
        return None if index is None or not isinstance(state, str) else (index, state)

    def _keep(self, index: FieldIndex, state: str) -> None:
        key = self._key()
        if key is not None and self._directory is not None:
            metadata = {"release": VERSION, "state": state}
            with contextlib.suppress(StoreError), DiskStore.open(self._directory) as store:
                store.put(key, dump(index), metadata=metadata)

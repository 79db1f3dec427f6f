"""Kubernetes' own kinds, of every known release: the packaged file, read when somebody asks for a document.

``tests/converters/record_release_documents.py`` writes the file from the published documents. It has no
descriptions; the published documents have, and ``specmux cache fetch`` keeps them in the disk cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from functools import cache, cached_property
from pathlib import Path
from pkgutil import get_data
from typing import TYPE_CHECKING, Final

from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON
from specmux_converters.release_documents import ReleaseDocuments

if TYPE_CHECKING:  # imported where a disk cache is
    from specmux_cache.store.disk_store import DiskStore
    from specmux_cache.store.keys import Key

FILE: Final = "kubernetes_releases.json.zst"
PARTITION: Final = "releases"
"""A partition of the disk cache; a Go module with its version is the server, and its hash that of each
document."""


@cache
def built_in_releases() -> ReleaseDocuments:
    return ReleaseDocuments(get_data(__package__, FILE) or b"")


def published_key(release: str, group_version: GroupVersion) -> Key:
    """The key of a published document in the disk cache: of the very version that the packaged one is of."""
    from specmux_cache.store.keys import Key

    module, hash = built_in_releases().source_of(release)
    return Key(module, PARTITION, group_version, hash, JSON)


class PublishedDocuments:
    """The documents of one release that a disk cache has, with descriptions. A cache that cannot be used has
    none."""

    def __init__(self, release: str, directory: Path | None) -> None:
        self._release = release
        self._directory = directory

    @cached_property
    def group_versions(self) -> frozenset[GroupVersion]:
        """The published documents as they were when this was first asked."""
        from specmux_cache.errors import StoreError

        with contextlib.suppress(StoreError), self._open_store() as store:
            module, _ = built_in_releases().source_of(self._release)
            found = store.rows(module, PARTITION) if store else ()
            keys = {GroupVersion(row.key.group_version): row.key for row in found}
            return frozenset(each for each, key in keys.items() if key == published_key(self._release, each))
        return frozenset()

    @property
    def is_complete(self) -> bool:
        return self.group_versions.issuperset(built_in_releases().group_versions(self._release))

    def bodies(self, group_versions: Collection[GroupVersion]) -> dict[GroupVersion, bytes]:
        """JSON. One that was removed meanwhile is left out."""
        from specmux_cache.errors import StoreError

        wanted = self.group_versions.intersection(group_versions)
        if wanted:
            with contextlib.suppress(StoreError), self._open_store() as store:
                entries = {key: store and store.get(published_key(self._release, key)) for key in wanted}
                return {key: entry.body for key, entry in entries.items() if entry}
        return {}

    def _open_store(self) -> contextlib.AbstractContextManager[DiskStore | None]:
        """Whoever reads makes no folder."""
        if self._directory is None or not self._directory.is_dir():
            return contextlib.nullcontext()
        from specmux_cache.store.disk_store import DiskStore

        return DiskStore.open(self._directory)

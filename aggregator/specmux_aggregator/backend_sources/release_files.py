"""Kubernetes' own kinds of a release, as if their documents lay in a folder."""

from __future__ import annotations

from pathlib import Path

import orjson

from specmux_aggregator.backend_sources.files import Fingerprint
from specmux_aggregator.built_in_releases import PublishedDocuments, built_in_releases
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.group_versions import GroupVersion

_SUFFIX = ".json"


class ReleaseFiles:
    """The documents that the package has of a release, with descriptions where the disk cache in
    ``directory`` has them published. They never change."""

    def __init__(self, release: str, directory: Path | None, *, max_files: int) -> None:
        self._release = release
        self._published = PublishedDocuments(release, directory)
        self._max_files = max_files

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        keys = built_in_releases().group_versions(self._release)
        if len(keys) > self._max_files:
            return Failure(Cause.TOO_LARGE, f"more than {self._max_files} files")
        return {f"{key}{_SUFFIX}": (0, 0, 0) for key in keys}

    def read(self, name: str) -> bytes:
        key = GroupVersion(name.removesuffix(_SUFFIX))
        published = self._published.bodies((key,))
        return published[key] if published else orjson.dumps(built_in_releases().document(self._release, key))

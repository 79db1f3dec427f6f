"""The documents of an OCI image layout, as if they lay in a folder."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

from specmux_aggregator.backend_sources.files import Fingerprint
from specmux_aggregator.backend_sources.oci_layout import Layout, LayoutDocument
from specmux_aggregator.errors import UnreadableLayout
from specmux_aggregator.model.failure import Cause, Failure


class LayoutFiles:
    """The documents of the manifest that the word names now. One is read again when its blob is another, or
    was written again."""

    def __init__(self, word: Path, *, max_files: int, max_bytes: int) -> None:
        self._word = str(word)
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._documents: dict[str, tuple[Layout, LayoutDocument]] = {}

    async def scan(self) -> dict[str, Fingerprint] | Failure:
        return await asyncio.to_thread(self._scan)

    def read(self, name: str) -> bytes:
        """The verified bytes. Raises OSError; blocks."""
        layout, document = self._documents[name]
        try:
            return layout.read(document, max_bytes=self._max_bytes)
        except UnreadableLayout as error:
            raise OSError(errno.EIO, str(error)) from error

    def _scan(self) -> dict[str, Fingerprint] | Failure:
        try:
            layout = Layout(self._word)
            documents = layout.documents()
        except UnreadableLayout as error:
            return Failure(Cause.UNREADABLE, str(error))
        if len(documents) > self._max_files:
            return Failure(Cause.TOO_LARGE, f"more than {self._max_files} files")
        self._documents = {each.name: (layout, each) for each in documents}
        return {
            each.name: (layout.modification_time(each), int(each.blob.digest.partition(":")[2], 16), 0)
            for each in documents
        }

"""Pages as they were sent, by their ETag: to make one anew is a job of the reader."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from specmux_aggregator.http.messages import ETag

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of all bodies together: some 50 kinds' pages as gzip, of the largest."""


class RenderedPages:
    """The least recently asked for go first. A body of more than an eighth of the room is not kept."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bodies: OrderedDict[ETag, bytes] = OrderedDict()
        self.held = 0
        """Bytes."""

    def get(self, etag: ETag) -> bytes | None:
        body = self._bodies.get(etag)
        if body is not None:
            self._bodies.move_to_end(etag)
        return body

    def keep(self, etag: ETag, body: bytes) -> None:
        if len(body) > self._most // 8 or etag in self._bodies:
            return
        self._bodies[etag] = body
        self.held += len(body)
        while self.held > self._most:
            _, gone = self._bodies.popitem(last=False)
            self.held -= len(gone)

"""Frames of a watch in Protobuf (``application/vnd.kubernetes.protobuf;type=watch``): each starts with its
length in 4 bytes, big-endian (k8s.io/streaming, pkg/runtime/framer).

Pure: from bytes to complete frames. A reader holds at most one frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specmux_converters.errors import InvalidDocument, LimitExceeded

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf;type=watch"
_LENGTH_BYTES: Final = 4
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a frame; the limit of client-go (pkg/runtime/serializer/streaming)."""


def write_frame(body: bytes) -> bytes:
    """Raises LimitExceeded if the length does not fit into 32 bits."""
    if len(body) >= 1 << 32:
        raise LimitExceeded("a frame of 4 GiB or more")
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class FrameReader:
    """Splits a stream, received in pieces, into frames."""

    def __init__(self, *, max_bytes: int = _MOST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames completed by ``data``; frames not consumed are returned by the next call. Raises
        LimitExceeded once a length exceeds ``max_bytes``, which ends the stream."""
        self._buffer += data
        return iter(self._next, None)

    def close(self) -> None:
        """Raises InvalidDocument if the stream ended inside a frame."""
        if self._buffer:
            raise InvalidDocument(f"the stream ended inside a frame, {len(self._buffer)} bytes into it")

    def _next(self) -> bytes | None:
        size = int.from_bytes(self._buffer[:_LENGTH_BYTES], "big")
        end = _LENGTH_BYTES + size
        if len(self._buffer) >= _LENGTH_BYTES and size > self._max_bytes:
            raise LimitExceeded(f"a frame of {size} bytes, more than the {self._max_bytes} allowed")
        if len(self._buffer) < end:
            return None
        frame = bytes(self._buffer[_LENGTH_BYTES:end])
        del self._buffer[:end]
        return frame

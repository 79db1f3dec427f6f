"""Frames of a watch in Protobuf (``application/vnd.kubernetes.protobuf;type=watch``): each begins with its
length in 4 bytes, big-endian (k8s.io/streaming, pkg/runtime/framer).

Pure: bytes in, whole frames out, as they come. A reader holds one frame at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specmux_converters.errors import InvalidDocument, LimitExceeded

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf;type=watch"
_LENGTH_BYTES: Final = 4
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a frame; client-go takes as much (pkg/runtime/serializer/streaming)."""


def write_frame(body: bytes) -> bytes:
    """Raises LimitExceeded beyond what 32 bits can say."""
    if len(body) >= 1 << 32:
        raise LimitExceeded("a frame of 4 GiB or more")
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


class FrameReader:
    """Takes pieces of a stream, gives its frames."""

    def __init__(self, *, max_bytes: int = _MOST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that are whole with ``data``; those not taken come with the next call. Raises
        LimitExceeded as soon as a length says more than ``max_bytes``: the stream has no more frames then."""
        self._buffer += data
        return iter(self._next, None)

    def close(self) -> None:
        """Raises InvalidDocument where the stream ended inside a frame."""
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

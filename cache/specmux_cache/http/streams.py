"""A GET with an endless body, for an event loop: lines as they arrive, awaited in a thread of its own, since
it waits for as long as nothing happens: among those of requests, a few streams would leave none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from specmux_cache.errors import BadAnswer
from specmux_cache.http.answer_reader import AnswerHead
from specmux_cache.http.caching import first
from specmux_cache.http.media_types import canonical
from specmux_cache.http.transport import Transport
from specmux_cache.http.wire import Wire
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Streaming:
    """An answer with an endless body. ``lines`` raises ServerUnreachable and BadAnswer."""

    status: int
    media_type: str
    lines: AsyncIterator[bytes]


@asynccontextmanager
async def open_stream(
    transport: Transport, url: str, *, accept: str, silence: float
) -> AsyncIterator[Streaming]:
    """``silence``: seconds without a byte after which it ends. Raises ServerUnreachable and BadAnswer."""
    thread = ThreadPoolExecutor(1, "specmux-cache-stream")
    wire = Wire(time.monotonic() + silence)
    reading: Future[Any] | None = None

    def begin() -> AnswerHead:
        with transport.reporting(url, late="timed out: no data arrived"):
            transport.claim(wire)
            return transport.begin(wire, url, {"accept": accept, "accept-encoding": "identity"})

    def read(pieces: Iterator[bytes]) -> bytes:
        with transport.reporting(url, late="timed out: no data arrived"):
            wire.begin(time.monotonic() + silence)
            return next(pieces, b"")

    async def lines(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """An unterminated line at the end of the body is dropped."""
        nonlocal reading
        rest = b""
        while True:
            reading = job = thread.submit(read, pieces)
            piece = await asyncio.wrap_future(job)
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line
            if len(rest) > transport.max_body_bytes:
                raise BadAnswer("a line is longer than max_body_bytes", url=url)

    try:
        reading = beginning = thread.submit(begin)
        head = await asyncio.wrap_future(beginning)
        media_type = canonical(first(head.fields, "content-type") or "").partition(";")[0]
        yield Streaming(head.status, media_type, lines(head.pieces))
    finally:
        transport.release(wire)
        wire.abort()
        if reading is not None:  # closed by whoever is the last to use it
            reading.add_done_callback(lambda _: wire.close())
        thread.shutdown(wait=False)

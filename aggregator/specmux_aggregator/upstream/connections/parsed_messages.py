"""Messages and bodies of consecutive answers, parsed by aiohttp's exported parser.

Invariant: unrequested input yields no message; the connection ends with the first byte that the parser
refuses, and waiters for an answer or a body are notified.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aiohttp import ClientPayloadError
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

_WITHOUT_BODY: Final = (204, 304)
EARLY: Final = 0.001
"""Seconds by which a timer may fire early, due to the resolution of the loop's clock."""


class SilenceTimer:
    """Calls ``on_silence`` when ``seconds`` have passed since the last ``start``, unless stopped.

    Almost free while data arrives: one timer remains, which when it fires checks how long the silence has
    lasted and waits for the rest. A timer per request and piece would be most of the cost of reading.
    """

    __slots__ = ("_due", "_goes_off", "_handle", "_on_silence", "_time", "seconds")

    def __init__(self, time: asyncio.AbstractEventLoop, on_silence: Callable[[], None]) -> None:
        """``time``: the loop on which it runs."""
        self._time = time
        self._on_silence = on_silence
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When the silence is too long, on the loop's clock; infinite if stopped."""
        self._goes_off = math.inf
        """When the handle fires, which may be earlier."""
        self.seconds: float | None = None
        """None: unlimited."""

    def start(self) -> None:
        """Start, or start anew."""
        if not self.seconds:
            self.stop()
            return
        self._due = self._time.time() + self.seconds
        if self._due < self._goes_off:
            self._set()

    def stop(self) -> None:
        """Wait for nothing."""
        self._due = math.inf

    def close(self) -> None:
        """Stop and release the handle."""
        self._due = self._goes_off = math.inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._goes_off = self._due
        self._handle = self._time.call_at(self._due, self._go_off)

    def _go_off(self) -> None:
        self._handle, self._goes_off = None, math.inf
        if self._due <= self._time.time() + EARLY:
            self._due = math.inf
            self._on_silence()
        elif self._due < math.inf:
            self._set()


class ParsedMessages:
    """The messages of one connection. Each request gets a new parser."""

    def __init__(self, reader: Any, timer: SilenceTimer) -> None:
        """``reader``: the protocol that pauses and resumes reading for bodies."""
        self._reader = reader
        self._timer = timer
        self._parser: HttpResponseParser | None = None
        self._waiting: deque[tuple[RawResponseMessage, StreamReader]] = deque()
        """Messages that were not taken yet."""
        self._taker: asyncio.Future[None] | None = None
        self._has_no_body = False
        self.body: StreamReader | None = None
        """The body of the last message, as received so far."""
        self.error: BaseException | None = None
        """Why no more messages can arrive."""
        self.is_last = False
        """Whether the connection ends with the last message."""
        self.is_upgraded = False

    @property
    def is_whole(self) -> bool:
        """Whether the last message is complete."""
        return self.body is not None and self.body.is_eof()

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may be used for another request."""
        is_over = self.is_last or self.is_upgraded or self.error is not None
        return not is_over and not self._waiting and (self.body is None or self.body.is_eof())

    def expect(self, buffer: int, *, has_no_body: bool, **options: Any) -> None:
        """Prepare for the answer to the next request. ``options``: of aiohttp's parser."""
        self._has_no_body = has_no_body
        self._parser = HttpResponseParser(
            self._reader,
            asyncio.get_running_loop(),
            buffer,
            payload_exception=ClientPayloadError,
            response_with_body=not has_no_body,
            **options,
        )

    def feed(self, data: bytes) -> bool:
        """Parse; returns False if the connection has to end."""
        if self._parser is None or self.is_upgraded:
            self.is_last = True
            return True
        try:
            messages, self.is_upgraded, _ = self._parser.feed_data(data)
        except Exception as error:  # noqa: BLE001  # whatever a parser raises, the server sent it
            refused = HttpProcessingError()
            if isinstance(error, HttpProcessingError):
                refused = HttpProcessingError(code=error.code, message=error.message, headers=error.headers)
            refused.__cause__ = error
            self.fail(refused)
            self._cut(f"not HTTP: {error!r}")
            return False
        for message, body in messages:
            self._take(message, body)
        return True

    def fail(self, error: BaseException) -> None:
        """End with an error: no more messages arrive."""
        self.is_last = True
        self._timer.stop()
        self.error = error
        self._wake()

    def end(self, *, is_clean: bool, loss: BaseException | None = None) -> RawResponseMessage | None:
        """Note the end of the connection. ``is_clean``: closed by its server, which ends a body without
        another delimiter; else ``loss`` is the reason. Returns the message whose head was incomplete."""
        parser, self._parser = self._parser, None
        rest: RawResponseMessage | None = None
        if parser is not None and is_clean:
            try:
                rest = parser.feed_eof()
            except Exception as error:  # noqa: BLE001  # as above
                self._cut(repr(error))
        self._cut("the connection was lost", loss)
        self.body = None
        return rest

    def interrupt(self, error: BaseException) -> None:
        """Stop: neither messages nor more of the body arrive."""
        self.fail(error)
        if self.body is not None and not self.body.is_eof():
            self.body.set_exception(error)

    async def read(self) -> tuple[RawResponseMessage, StreamReader]:
        """The next message. Raises the reason if there is none."""
        while not self._waiting:
            if self.error is not None:
                raise self.error
            self._taker = asyncio.get_running_loop().create_future()
            try:
                await self._taker
            finally:
                self._taker = None
        return self._waiting.popleft()

    def _take(self, message: RawResponseMessage, body: StreamReader) -> None:
        self.is_last = self.is_last or message.should_close
        self.body = body
        is_interim = message.code < 200 and message.code != 101
        is_bare = self._has_no_body or message.code < 200 or message.code in _WITHOUT_BODY
        self._waiting.append((message, EMPTY_PAYLOAD if is_bare else body))
        if body is not EMPTY_PAYLOAD:
            body.on_eof(self._timer.stop)
        elif not is_interim:  # the final answer is still to come
            self._timer.stop()
        self._wake()

    def _cut(self, why: str, cause: BaseException | None = None) -> None:
        body = self.body
        if body is not None and not body.is_eof() and body.exception() is None:
            error = ClientPayloadError(f"Response payload is not completed: {why}")
            error.__cause__ = cause
            body.set_exception(error)

    def _wake(self) -> None:
        if self._taker is not None and not self._taker.done():
            self._taker.set_result(None)

"""The stream of ``/openapi/changes``: ``text/event-stream`` (WHATWG HTML 9.2), JSON lines, or a CBOR sequence
(RFC 8742, as in KEP-4222's watches).

A request lasts until either side ends it or its permission ends: nothing is sent to a client that would be
refused now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from typing import Final

import orjson
from aiohttp import HttpVersion10
from aiohttp.http import RawRequestMessage

from specmux_aggregator.changes.endpoint import PATH, ROUTE
from specmux_aggregator.changes.events import (
    MOST_FOLLOWERS,
    MOST_OF_ADDRESS,
    SILENCE,
    EventFollower,
    Feed,
    Followers,
    StreamEvent,
)
from specmux_aggregator.changes.log import read_id
from specmux_aggregator.http.negotiation import media_type_for
from specmux_aggregator.http.prepared_answer import refusal
from specmux_aggregator.http.query import parameters
from specmux_aggregator.server.admission import address_of
from specmux_aggregator.server.dispatch import target_of
from specmux_aggregator.server.protocols import Guard, Reply, Response, WireRequest, is_still_permitted
from specmux_converters.media_types import MediaType

EVENT_STREAM: Final = MediaType("text/event-stream")
JSON_LINES: Final = MediaType("application/jsonl")
NDJSON: Final = MediaType("application/x-ndjson")
CBOR_SEQUENCE: Final = MediaType("application/cbor-seq")
STREAMED: Final = (EVENT_STREAM, JSON_LINES, NDJSON, CBOR_SEQUENCE)

HEARTBEAT: Final = 15.0
"""Seconds of silence after which a keep-alive is sent: proxies close silent connections."""

PIECE: Final = 64 * 1024
"""Bytes of a large event handed over at a time. This much is buffered for each client that does not read; the
event itself is shared by all."""

WRITTEN: Final = 8
"""Serialized events that are cached, since followers read them at about the same time."""

KEPT: Final = 30.0
"""Seconds for which they are kept after the last follower left: clients that ask and leave come again."""


class ChangeStreams:
    """The endpoint of the stream. Implements the server's ``StreamingHandler``."""

    def __init__(
        self,
        followers: Followers,
        *,
        is_private: bool,
        guard: Guard | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        """``guard`` is asked again before each write; None: everybody is permitted."""
        self._followers = followers
        self._guard = guard
        self._written = lru_cache(maxsize=WRITTEN)(write_event)
        self._is_private = is_private
        self._heartbeat = heartbeat
        self._forgetting: asyncio.TimerHandle | None = None

    def claims(self, message: RawRequestMessage) -> bool:
        return _is_stream(message)

    async def stream(self, request: WireRequest) -> Response | Reply:
        try:
            kind, since = parse_feed(request.message)
        except ValueError as error:
            return Reply(refusal(400, "BadRequest", str(error), route=ROUTE), is_last=True)
        follower = self._followers.add(kind, since, address_of(request.connection.peername))
        if follower is None:
            message = (
                f"no more can follow: {MOST_FOLLOWERS} do, or {MOST_OF_ADDRESS} from your address"
                " (listen.max_connections_per_address: 0 lifts that)"
            )
            fields = [("Retry-After", "30")]
            return Reply(
                refusal(503, "ServiceUnavailable", message, fields=fields, route=ROUTE), is_last=True
            )
        form = media_type_for(request.message.headers.get("Accept"), STREAMED) or EVENT_STREAM
        return EventStreamWriter(
            follower,
            form,
            request,
            heartbeat=self._heartbeat,
            is_private=self._is_private,
            ended=self._end_follower,
            guard=self._guard,
            written=self._written,
        )

    def _end_follower(self, follower: EventFollower) -> None:
        self._followers.remove(follower)
        if not self._followers and self._forgetting is None:
            self._forgetting = asyncio.get_running_loop().call_later(KEPT, self._forget)

    def _forget(self) -> None:
        self._forgetting = None
        if not self._followers:
            self._written.cache_clear()


class EventStreamWriter:
    """Writes the events of one follower."""

    keep_alive = False

    def __init__(
        self,
        follower: EventFollower,
        form: MediaType,
        request: WireRequest,
        *,
        heartbeat: float,
        is_private: bool,
        ended: Callable[[EventFollower], None],
        guard: Guard | None,
        written: Callable[[StreamEvent, MediaType], bytes],
    ) -> None:
        self._follower = follower
        self._form = form
        self._request = request
        self._connection = request.connection
        self._heartbeat = heartbeat
        self._ended = ended
        self._guard = guard
        self._written = written
        self.sent = 0
        """Bytes of the current event handed over."""
        self._is_chunked = request.message.version != HttpVersion10
        self._head = self._write_head(is_private=is_private)

    async def write(self) -> None:
        """Write until the client leaves or is cut off. Raises ConnectionError."""
        self._connection.streamed = self._request
        try:
            self._connection.send(self._head + self._frame(_beat(self._form)))
            await self._connection.drain()
            await self._write_events()
        except (ConnectionError, asyncio.CancelledError):
            self._connection.connections.stats.disconnects += 1
            raise
        finally:
            self._ended(self._follower)
            if self._connection.streamed is not None:
                self._connection.end_streaming()

    def give_way(self) -> None:
        """End the connection at once: it reads too slowly, and others need the memory."""
        self._connection.connections.stats.write_stalls += 1
        self._connection.cut_off()

    async def _write_events(self) -> None:
        sent = self._follower.last_id
        while (event := await self._follower.next(self._heartbeat)) is not None:
            if not await self._is_permitted():
                break
            data = _beat(self._form) if event is SILENCE else self._written(event, self._form)
            if not await self._send(data):
                break
            sent = event.id or sent
        reset = write_event(StreamEvent(sent, "reset", b"{}"), self._form)
        self._connection.send(self._frame(reset) + (b"0\r\n\r\n" if self._is_chunked else b""))
        await self._connection.drain()

    async def _is_permitted(self) -> bool:
        """Whether an equal new request on this connection would be permitted."""
        return not self._connection.is_ending and await is_still_permitted(self._guard, self._request)

    async def _send(self, data: bytes) -> bool:
        """Send an event, a large one as fast as it is read; returns False if too much is unread."""
        if len(data) <= PIECE:
            self._connection.send(self._frame(data))
            await self._connection.drain()
            return True
        unread, view = self._connection.connections.unread, memoryview(data)
        if not unread.admit(data, self, time.monotonic()):
            return False
        try:
            for self.sent in range(0, len(data), PIECE):
                self._connection.send(self._frame(view[self.sent : self.sent + PIECE]))
                await self._connection.drain()
        finally:
            unread.leave(data, self)
        return True

    def _frame(self, data: bytes | memoryview[int]) -> bytes:
        if not self._is_chunked or not data:
            return bytes(data)
        return b"".join((b"%x\r\n" % len(data), data, b"\r\n"))

    def _write_head(self, *, is_private: bool) -> bytes:
        lines = [
            "HTTP/1.1 200 OK",
            f"Content-Type: {self._form}",
            f"Cache-Control: {'private, ' if is_private else ''}no-store",
            "Vary: Accept",
            # nginx would buffer the stream like a page
            "X-Accel-Buffering: no",
            f"Date: {formatdate(usegmt=True)}",
            *(["Transfer-Encoding: chunked"] if self._is_chunked else []),
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def parse_feed(message: RawRequestMessage) -> tuple[Feed, int | None]:
    """The events to follow, and the first of them. Raises ValueError with a message for the client.

    A browser that reconnects sends the last id in a header field, which is newer than the one in its URL.
    """
    query = parameters(target_of(message).partition("?")[2])
    kind = query.get("kind", Feed.CHANGES.value)
    if kind not in set(Feed):
        raise ValueError(f'"kind" must be one of {", ".join(Feed)}')
    since = message.headers.get("Last-Event-ID") or query.get("since")
    if since is None:
        return Feed(kind), None
    try:
        return Feed(kind), read_id(since)
    except ValueError as error:
        raise ValueError('"since" and Last-Event-ID must be the id of an event') from error


def _is_stream(message: RawRequestMessage) -> bool:
    """Whether it asks for the stream: its media type must be named, a wildcard does not suffice."""
    if message.method != "GET" or not message.path.startswith(PATH):
        return False
    accept = message.headers.get("Accept", "").lower()
    return any(form in accept for form in STREAMED) and target_of(message).partition("?")[0] == PATH


def write_event(event: StreamEvent, form: MediaType) -> bytes:
    """JSON has no line breaks, so it is also one line of an event stream."""
    if form == EVENT_STREAM:
        mark = b"" if event.name == "reset" and not event.id else b"id: %d\n" % event.id
        return b"event: %b\n%bdata: %b\n\n" % (event.name.encode(), mark, event.data)
    if form == CBOR_SEQUENCE:
        from cbor2 import dumps

        value = {"event": event.name, "id": event.id, "data": orjson.loads(event.data)}
        sequenced: bytes = dumps(value)
        return sequenced
    return b'{"event":"%b","id":%d,"data":%b}\n' % (event.name.encode(), event.id, event.data)


def _beat(form: MediaType) -> bytes:
    """A keep-alive that no reader takes for an event: a comment, white space, or CBOR's undefined."""
    if form == EVENT_STREAM:
        return b": \n\n"
    return b"\xf7" if form == CBOR_SEQUENCE else b"\n"

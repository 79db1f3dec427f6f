"""Read objects of an apiserver as JSON: one at a time, or as the endless lines of a watch.

Errors become Failures here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import aiohttp
import orjson

from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.credentials import Identities, Unusable
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS, failure_of
from specmux_aggregator.upstream.responses import INLINE_MAX, NotModified, Payload, Redirect, read_answer
from specmux_aggregator.upstream.transport import CLOSED, BackendTransport
from specmux_converters.media_types import JSON

MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one answer, decoded."""

MAX_LINE: Final = 16 * 1024 * 1024
"""Bytes of the largest event. etcd limits an object to about 1.5 MiB."""

Event = Mapping[str, Any]

T = TypeVar("T")


class ApiClient:
    """Sends requests to one apiserver. Lives on one event loop until ``close``."""

    def __init__(
        self,
        server: Backend,
        *,
        polling: PollingSettings,
        identities: Identities | None = None,
        max_bytes: int = MAX_BYTES,
        max_line: int = MAX_LINE,
    ) -> None:
        """``identities``: as in BackendTransport."""
        self.server = server
        self._polling = polling
        self._max_bytes = max_bytes
        self._max_line = max_line
        self._transport = BackendTransport(server, polling=polling, identities=identities)

    async def get(self, target: str) -> Mapping[str, Any] | Failure:
        """The object at a path with a query."""
        return await self.read(target, lambda value, _: value)

    async def read(self, target: str, take: Callable[[Mapping[str, Any], int], T | Failure]) -> T | Failure:
        """The result of ``take`` for the object at a path with a query, and of the bytes of its JSON; of a
        large one in a thread."""
        fields = {"Accept": JSON, "Accept-Encoding": "gzip"}
        try:
            async with (
                asyncio.timeout(self._polling.total_timeout),
                self._transport.request("GET", target, fields=fields) as response,
            ):
                answer = await read_answer(response, max_bytes=self._max_bytes, is_conditional=False)
        except Unusable as unusable:
            return unusable.failure
        except TRANSPORT_ERRORS as error:
            return self._failure(error, self._polling)
        match answer:
            case Payload() if len(answer.body) <= INLINE_MAX:
                return self._take_object(answer, take)
            case Payload():
                return await asyncio.to_thread(self._take_object, answer, take)
            case Redirect():
                return Failure(Cause.REDIRECTED, f"answered {answer.status}, a redirect")
            case NotModified():
                return Failure(Cause.UNEXPECTED_STATUS, "answered 304 to what was no condition")
            case Failure():
                return answer

    async def events(
        self,
        target: str,
        *,
        lasting: float,
        silence: float,
        opened: Callable[[], None],
        take: Callable[[list[Event]], Failure | None],
    ) -> Failure | None:
        """Read the lines of a watch and pass them on as they arrive. Returns None when the watch ends
        normally.

        ``lasting``: seconds after which it is ended here; ``silence``: seconds without a byte after which it
        counts as failed. ``opened`` is called after a 200, ``take`` with events in order; a result of
        ``take`` ends the watch.
        """
        polling = replace(self._polling, idle_timeout=silence)
        has_opened = False
        try:
            async with (
                asyncio.timeout(self._polling.total_timeout) as limit,
                self._transport.request(
                    "GET",
                    target,
                    fields={"Accept": JSON, "Accept-Encoding": "identity"},
                    idle_timeout=silence,
                ) as response,
            ):
                if response.status != 200:
                    refusal = await read_answer(response, max_bytes=self._max_bytes, is_conditional=False)
                    if isinstance(refusal, Failure):
                        return refusal
                    return Failure(Cause.UNEXPECTED_STATUS, f"answered {response.status}")
                has_opened = True
                limit.reschedule(asyncio.get_running_loop().time() + lasting)
                opened()
                return await self._take_lines(response, take)
        except Unusable as unusable:
            return unusable.failure
        except LineTooLong as error:
            return Failure(Cause.TOO_LARGE, str(error))
        except _NoObject:
            return Failure(Cause.BAD_BODY, "an event is no JSON object")
        except TRANSPORT_ERRORS as error:
            if has_opened and limit.expired():
                return None  # its time is over
            return self._failure(error, polling)

    async def close(self) -> None:
        """Close every connection. Running and later requests fail."""
        await self._transport.close()

    async def _take_lines(
        self, response: aiohttp.ClientResponse, take: Callable[[list[Event]], Failure | None]
    ) -> Failure | None:
        """Raises LineTooLong and _NoObject."""
        lines = Lines(self._max_line)
        async for chunk in response.content.iter_any():
            events = [await _parse_line(line) for line in lines.feed(chunk)]
            failure = take(events) if events else None
            if failure is not None:
                return failure
        if not lines.is_between:
            # Most likely a page of an intermediary: a broken connection does not end a body properly.
            return Failure(Cause.BAD_BODY, "the watch ended within an event")
        return None

    def _failure(self, error: Exception, polling: PollingSettings) -> Failure:
        return CLOSED if self._transport.is_closed else failure_of(error, polling)

    def _take_object(
        self, payload: Payload, take: Callable[[Mapping[str, Any], int], T | Failure]
    ) -> T | Failure:
        try:
            plain = decode_body(payload.body, payload.coding, max_bytes=self._max_bytes)
            value = orjson.loads(plain)
        except TooLarge:
            return Failure(Cause.TOO_LARGE, f"the body is larger than the {self._max_bytes} bytes allowed")
        except BadCoding as error:
            return Failure(Cause.TRUNCATED, str(error))
        except orjson.JSONDecodeError:
            return Failure(Cause.BAD_BODY, "the body is no JSON")
        if not isinstance(value, dict):
            return Failure(Cause.BAD_BODY, "the body is no JSON object")
        return take(value, len(plain))


class _NoObject(Exception):
    """A line of a watch is not an object."""


async def _parse_line(line: bytes) -> Event:
    try:
        value = orjson.loads(line) if len(line) <= INLINE_MAX else await asyncio.to_thread(orjson.loads, line)
    except orjson.JSONDecodeError as error:
        raise _NoObject from error
    if not isinstance(value, dict):
        raise _NoObject
    return value


class LineTooLong(Exception):
    """A line exceeded the bound; the start of the next one is unknown."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"an event is larger than the {max_bytes} bytes allowed")


class Lines:
    """Keeps the incomplete line."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The non-empty lines that end in the chunk. Raises LineTooLong."""
        first, *rest = chunk.split(b"\n")
        self._size += len(first)
        self._check(self._size)
        self._begun.append(first)
        if not rest:
            return []
        whole = [b"".join(self._begun), *rest[:-1]]
        self._begun, self._size = [rest[-1]], len(rest[-1])
        self._check(max(map(len, (*whole, rest[-1]))))
        return [line for line in whole if line.strip()]

    @property
    def is_between(self) -> bool:
        """Whether there is no incomplete line."""
        return not any(part.strip() for part in self._begun)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise LineTooLong(self._max_bytes)

"""Follow a server's documents by its stream of publications, or by polling its list if it has none.

A follower receives each hash once, in the order in which it was seen; known hashes are not repeated, however
often a connection breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_cache.errors import BadAnswer, CacheError, RequestError
from specmux_cache.http.streams import open_stream
from specmux_cache.http.transport import Transport
from specmux_cache.reading.results import Publication

PATH: Final = "/openapi/changes"
FORM: Final = "application/jsonl"
SILENCE_MAX: Final = 60.0
"""Seconds without a byte after which a stream counts as broken: keep-alives arrive every 15."""
PAUSE_FIRST: Final = 0.2
"""Seconds before a broken stream is opened again; doubled each time."""
PAUSE_MAX: Final = 30.0


class NoStream(CacheError):
    """The server offers no stream."""


class Follower:
    """Follows one server for one caller."""

    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        hashes: Callable[[], Awaitable[Mapping[str, str]]],
        warn: Callable[[str], None],
        interval: float,
    ) -> None:
        """``url``: of the stream; ``hashes``: requests the list, by group-version. ``interval``: seconds
        between polls without a stream."""
        self._transport = transport
        self._url = url
        self._hashes = hashes
        self._warn = warn
        self._interval = interval
        self._known: dict[str, str] = {}
        self._since: int | None = None
        self._is_telling = True

    async def publications(self) -> AsyncIterator[Publication]:
        """Never ends."""
        pause, has_stream = PAUSE_FIRST, True
        while True:
            try:
                async for found in self._follow_stream() if has_stream else self._poll_list():
                    pause = PAUSE_FIRST
                    self._is_telling = True
                    yield found
            except NoStream:
                has_stream = False
                continue
            except RequestError as error:
                if self._is_telling:
                    self._warn(f"{error}; it is asked again until it answers")
                self._is_telling = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX)

    async def _follow_stream(self) -> AsyncIterator[Publication]:
        """Ends with the stream. Raises NoStream, RequestError."""
        since = "" if self._since is None else f"&since={self._since}"
        async with open_stream(
            self._transport, f"{self._url}?kind=publications{since}", accept=FORM, silence=SILENCE_MAX
        ) as answer:
            if answer.status in (429, 503):
                raise BadAnswer(f"the server answered {answer.status}", url=self._url)
            if answer.status != 200 or answer.media_type != FORM:
                raise NoStream(f"{self._url}: answered {answer.status}")
            async for line in answer.lines:
                if line.strip():
                    # Update the list first: a request for a document then gets the announced one.
                    await self._hashes()
                    for found in self._parse_event(line):
                        yield found

    def _parse_event(self, line: bytes) -> Iterator[Publication]:
        try:
            event = orjson.loads(line)
            name, number, data = event["event"], int(event["id"]), event["data"]
            if name == "reset":
                self._since = None
                return
            versions = {
                str(key): None if value is None else str(value["hash"]) for key, value in data.items()
            }
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadAnswer("the stream is not what it says it is", url=self._url) from error
        self._since = number
        if name == "publications":
            versions |= dict.fromkeys(self._known.keys() - versions.keys())
        yield from self._tell_changes(versions)

    async def _poll_list(self) -> AsyncIterator[Publication]:
        while True:
            now: dict[str, Any] = dict(await self._hashes())
            now |= dict.fromkeys(self._known.keys() - now.keys())
            for found in self._tell_changes(now):
                yield found
            await asyncio.sleep(self._interval)

    def _tell_changes(self, versions: Mapping[str, str | None]) -> Iterator[Publication]:
        for key, hash in sorted(versions.items()):
            before = self._known.get(key)
            if hash == before:
                continue
            if hash is None:
                del self._known[key]
            else:
                self._known[key] = hash
            yield Publication(key, hash, before)

"""Followers of changes and publications, each with a bounded queue.

Nothing is lost between a follower's first event and the next, since both are decided in one step of the event
loop. A follower that reads too slowly is cut off with a reset and starts anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from specmux_aggregator.changes.entries import LogEntry, PublishedVersion
from specmux_aggregator.changes.log import ChangeLog, new_base
from specmux_aggregator.server.admission import ClientAddresses
from specmux_converters.group_versions import GroupVersion

MOST_FOLLOWERS: Final = 256
MOST_OF_ADDRESS: Final = MOST_FOLLOWERS // 4
"""Most followers from one client address."""
MOST_QUEUED: Final = 64
MOST_REPLAYED: Final = 4096
"""Publications remembered for followers that return."""


class Feed(StrEnum):
    """The request of a follower."""

    CHANGES = "changes"
    PUBLICATIONS = "publications"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """``data`` is JSON."""

    id: int
    name: str
    """"change", "publication", "publications" (all of them) or "reset"."""
    data: bytes


SILENCE: Final = StreamEvent(0, "", b"")


class EventFollower:
    """The queue of one follower."""

    def __init__(
        self, kind: Feed, backlog: list[StreamEvent], address: bytes = b"", *, last_id: int = 0
    ) -> None:
        self.kind = kind
        self.last_id = last_id
        """The id from which a follower continues after reading everything sent."""
        self.address = address
        """The client's address; each address has a share of all places."""
        self._events: deque[StreamEvent] = deque(backlog)
        self._allowed = len(backlog) + MOST_QUEUED
        self._arrived = asyncio.Event()
        self.is_cut = False
        if backlog:
            self._arrived.set()

    def offer(self, event: StreamEvent) -> None:
        if self.is_cut:
            return
        if len(self._events) >= self._allowed:
            self.cut()
        else:
            self._events.append(event)
            self._arrived.set()

    def cut(self) -> None:
        self.is_cut = True
        self._events.clear()
        self._arrived.set()

    async def next(self, patience: float) -> StreamEvent | None:
        """The next event; SILENCE if none came within ``patience`` seconds, None if there will be no more."""
        if not self._events and not self.is_cut:
            self._arrived.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._arrived.wait()
            except TimeoutError:
                return SILENCE
        if not self._events:
            return None
        event = self._events.popleft()
        self.last_id = event.id
        if not self._events:
            self._allowed = MOST_QUEUED
        return event


class Followers:
    """All followers, and the events to replay."""

    def __init__(self, log: ChangeLog, *, most_of_address: int = MOST_OF_ADDRESS) -> None:
        """``most_of_address``: 0 if an address is not one client, as behind a proxy."""
        self._log = log
        self._addresses = ClientAddresses(most_of_address)
        self._followers: set[EventFollower] = set()
        self._publications: deque[StreamEvent] = deque(maxlen=MOST_REPLAYED)
        self._last_publication = self._floor = new_base()
        """``_floor``: publications up to here are forgotten. A new process starts without any."""
        self._published: dict[GroupVersion, PublishedVersion] = {}
        self._everything: StreamEvent | None = None
        """All of ``_published`` as one event, built on demand and shared."""

    def __len__(self) -> int:
        return len(self._followers)

    def add(self, kind: Feed, since: int | None, address: bytes = b"") -> EventFollower | None:
        """A follower of the events after ``since``; None if there are too many, in total or of
        ``address``."""
        if len(self._followers) >= MOST_FOLLOWERS or not self._addresses.take(address):
            return None
        backlog = self._backlog(kind, since)
        last = self._log.last_id if kind is Feed.CHANGES else self._last_publication
        follower = EventFollower(kind, backlog, address, last_id=0 if backlog else last)
        self._followers.add(follower)
        return follower

    def remove(self, follower: EventFollower) -> None:
        if follower in self._followers:
            self._followers.remove(follower)
            self._addresses.give_back(follower.address)

    def close(self) -> None:
        """Cut off every follower: the service stops."""
        for follower in self._followers:
            follower.cut()

    def note_change(self, entry: LogEntry) -> None:
        self._tell(Feed.CHANGES, _change(entry))

    def note_published(self, versions: Mapping[GroupVersion, PublishedVersion]) -> None:
        """Set everything that is published now."""
        different = {
            name: versions.get(name)
            for name in self._published.keys() | versions.keys()
            if self._published.get(name) != versions.get(name)
        }
        if not different:
            return
        self._published = dict(versions)
        self._everything = None
        self._last_publication += 1
        event = StreamEvent(self._last_publication, "publication", orjson.dumps(_show_versions(different)))
        if len(self._publications) == self._publications.maxlen:
            self._floor = self._publications[0].id
        self._publications.append(event)
        self._tell(Feed.PUBLICATIONS, event)

    def _backlog(self, kind: Feed, since: int | None) -> list[StreamEvent]:
        if kind is Feed.CHANGES:
            if since is None:
                return []
            is_whole, found = self._log.since(since)
            entries = [_change(entry) for entry in found]
            last = found[0].id - 1 if found else self._log.last_id
            return entries if is_whole else [StreamEvent(last, "reset", b"{}"), *entries]
        if since is None or not self._floor <= since <= self._last_publication:
            if self._everything is None:
                body = orjson.dumps(_show_versions(self._published))
                self._everything = StreamEvent(self._last_publication, "publications", body)
            return [self._everything]
        return [event for event in self._publications if event.id > since]

    def _tell(self, kind: Feed, event: StreamEvent) -> None:
        for follower in self._followers:
            if follower.kind is kind:
                follower.offer(event)


def _change(entry: LogEntry) -> StreamEvent:
    return StreamEvent(entry.id, "change", entry.body)


def _show_versions(versions: Mapping[GroupVersion, PublishedVersion | None]) -> dict[str, Any]:
    """``null`` stands for a removed group-version."""
    return {
        name: None if version is None else {"hash": version.hash, "backend": version.backend}
        for name, version in sorted(versions.items())
    }

"""Followers of two replicas' logs against the model: cut off, resumed anywhere, too slow, after restarts with
and without what was stored; and clients that poll the log page by page."""

from __future__ import annotations

import random
from typing import Final
from unittest import mock

import orjson
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from model.depth import STEPS, run_machine
from model.service_model import ChangeView, PublicationView, take_event
from model.virtual_time import VirtualLoop
from specmux_aggregator.changes import events
from specmux_aggregator.changes import log as change_log
from specmux_aggregator.changes.endpoint import Query, page_of
from specmux_aggregator.changes.entries import (
    ComparisonOutcome,
    LogEntry,
    PublishedVersion,
    entry_of,
    read_entry,
)
from specmux_aggregator.changes.events import SILENCE, EventFollower, Feed, Followers
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_converters.group_versions import GroupVersion

KEYS: Final = ("apis/a/v1", "apis/b/v1", "apis/b/v2")
ENTRIES_MAX: Final = 4
QUEUED_MAX: Final = 3
FOLLOWERS_MAX: Final = 16
REPLAYED_MAX: Final = 4

keys = st.sampled_from(KEYS)
replicas = st.integers(0, 1)
numbers = st.integers(0, 7)
hashes = st.sampled_from("ABC") | st.none()


class Log:
    """A replica's log and followers. ``settled``: what it published when it last settled."""

    def __init__(self) -> None:
        self.settled: dict[str, tuple[str, str]] = {}
        self.published: dict[str, tuple[str, str]] = {}
        self.stored: dict[int, bytes] = {}
        self.process()

    def process(self) -> None:
        """A new process, with what is stored."""
        self.log = ChangeLog(most_entries=ENTRIES_MAX, most_bytes=1 << 20)
        for entry in self.log.restore(filter(None, map(read_entry, self.stored.values()))):
            del self.stored[entry.id]
        self.followers = Followers(self.log, most_of_address=FOLLOWERS_MAX // 4)
        self.crowd: list[EventFollower] = []
        """Those of one address that nobody else should suffer from."""
        self.publish()

    def set(self, key: str, hash: str | None) -> None:
        if hash is None:
            self.published.pop(key, None)
        else:
            self.published[key] = (hash, "b")

    def publish(self) -> None:
        versions = {GroupVersion(key): _version(each) for key, each in self.published.items()}
        self.followers.note_published(versions)

    def settle(self) -> list[LogEntry]:
        """Record what changed; the entries."""
        found = []
        for key in sorted({*self.settled, *self.published}):
            old, new = self.settled.get(key), self.published.get(key)
            if old == new:
                continue
            versions = (old and _version(old), new and _version(new))
            entry = entry_of(self.log.next_id(), 0.0, GroupVersion(key), ComparisonOutcome.COMPARED, versions)
            self.stored[entry.id] = entry.body
            for gone in self.log.add(entry):
                self.stored.pop(gone.id, None)
            self.followers.note_change(entry)
            if new is None:
                del self.settled[key]
            else:
                self.settled[key] = new
            found.append(entry)
        return found


def _version(version: tuple[str, str]) -> PublishedVersion:
    return PublishedVersion(Hash(version[0]), BackendName(version[1]))


class Client:
    """A follower's connection; its view lasts longer."""

    def __init__(self, kind: Feed, replica: int, number: int) -> None:
        self.view = PublicationView() if kind is Feed.PUBLICATIONS else ChangeView()
        self.kind = kind
        self.replica = replica
        self.queue: EventFollower | None = None
        self.is_slow = False
        self.address = b"%d" % number


class StreamMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop(0)
        self.clients: list[Client] = []
        self.pollers = [(ChangeView(), 0), (ChangeView(), 1)]
        self._patches = [
            mock.patch.object(events, "MOST_QUEUED", QUEUED_MAX),
            mock.patch.object(events, "MOST_FOLLOWERS", FOLLOWERS_MAX),
            mock.patch.object(events, "MOST_REPLAYED", REPLAYED_MAX),
        ]
        for patch in self._patches:
            patch.start()

    @initialize(seed=st.integers(0, 1 << 16))
    def begin(self, seed: int) -> None:
        random_below = random.Random(seed).randrange
        self._patches.append(mock.patch.object(change_log.secrets, "randbelow", random_below))
        self._patches[-1].start()
        self.logs = [Log(), Log()]

    def teardown(self) -> None:
        for patch in self._patches:
            patch.stop()
        self.loop.close()

    @rule(replica=replicas, key=keys, hash=hashes)
    def publish(self, replica: int, key: str, hash: str | None) -> None:
        self.logs[replica].set(key, hash)
        self.logs[replica].publish()

    @rule(key=keys, hash=hashes, first=replicas)
    def publish_everywhere(self, key: str, hash: str | None, first: int) -> None:
        for replica in (first, 1 - first):
            self.publish(replica, key, hash)

    @rule(replica=replicas, key=keys, count=st.integers(2, 2 * ENTRIES_MAX))
    def change_often(self, replica: int, key: str, count: int) -> None:
        for number in range(count):
            self.publish(replica, key, "ABC"[number % 3])
            self.settle(replica)

    @rule(replica=replicas)
    def settle(self, replica: int) -> None:
        self.logs[replica].settle()

    @rule(replica=replicas, has_state=st.booleans(), key=keys, hash=hashes, lost=st.none() | numbers)
    def restart(self, replica: int, has_state: bool, key: str, hash: str | None, lost: int | None) -> None:
        """A document may change while it is down, and an entry may not have reached the disk."""
        log = self.logs[replica]
        for client in self.clients:
            if client.replica == replica:
                self._leave(client)
        log.set(key, hash)
        if has_state:
            if lost is not None and len(log.stored) > 1:
                gone = sorted(log.stored)[:-1]
                del log.stored[gone[lost % len(gone)]]
        else:
            log.stored.clear()
            log.settled = dict(log.published)
        log.process()

    @rule(kind=st.sampled_from(list(Feed)), replica=replicas)
    def follow(self, kind: Feed, replica: int) -> None:
        if len(self.clients) < 8:
            self.clients.append(Client(kind, replica, len(self.clients)))

    @rule(replica=replicas, count=st.integers(1, FOLLOWERS_MAX), stays=st.booleans())
    def crowd(self, replica: int, count: int, stays: bool) -> None:
        """One address takes all places that it gets; the others find one all the same."""
        log = self.logs[replica]
        for _ in range(count):
            follower = log.followers.add(Feed.CHANGES, None, b"crowd")
            log.crowd += [] if follower is None else [follower]
        if not stays:
            for follower in log.crowd:
                log.followers.remove(follower)
            log.crowd.clear()

    @rule(number=numbers, is_slow=st.booleans())
    def read_slowly(self, number: int, is_slow: bool) -> None:
        if self.clients:
            self.clients[number % len(self.clients)].is_slow = is_slow

    @rule(number=numbers, replica=replicas)
    def resume(self, number: int, replica: int) -> None:
        if self.clients:
            client = self.clients[number % len(self.clients)]
            self._leave(client)
            client.replica = replica

    @rule(number=st.integers(0, 1), replica=replicas, limit=st.integers(1, 3))
    def poll(self, number: int, replica: int, limit: int) -> None:
        """``?since=`` and ``continue=`` until there is no more."""
        view, since = self.pollers[number][0], self.pollers[number][1]
        log = self.logs[replica]
        query = Query(since, limit)
        while True:
            page = page_of(log.log, GroupVersion(""), query)
            if page.is_reset:
                view.take("reset", 0, "", None, None)
                view.since = None
            for entry in page.entries:
                view.take("change", entry.id, entry.group_version, _pair(entry.old), _pair(entry.new))
            if page.following is None:
                break
            query = Query(page.following, limit)
        view.compare(log.settled)
        view.since = page.last
        self.pollers[number] = (view, page.last)

    @invariant()
    def followers_know_what_they_should(self) -> None:
        STEPS["streams"] += 1
        self.loop.run_until_complete(self._read_all())

    def _leave(self, client: Client) -> None:
        if client.queue is not None:
            self.logs[client.replica].followers.remove(client.queue)
            client.queue = None

    async def _read_all(self) -> None:
        for client in self.clients:
            if client.is_slow:
                continue
            log = self.logs[client.replica]
            while True:
                if client.queue is None:
                    client.queue = log.followers.add(client.kind, client.view.since, client.address)
                    assert client.queue is not None, "the places are taken by one address"
                event = await client.queue.next(0.0)
                if event is SILENCE:
                    break
                if event is None:
                    # The stream ends with a reset of the last id; who follows publications starts anew.
                    self._leave(client)
                    if isinstance(client.view, PublicationView):
                        client.view.since = None
                    continue
                take_event(client.view, event.name, event.id, orjson.loads(event.data))
            truth = log.published if client.kind is Feed.PUBLICATIONS else log.settled
            client.view.compare(truth)


def _pair(version: PublishedVersion | None) -> tuple[str, str] | None:
    return None if version is None else (version.hash, version.backend)


def test_no_event_is_kept_from_a_follower() -> None:
    run_machine(StreamMachine, examples=150, steps=30)

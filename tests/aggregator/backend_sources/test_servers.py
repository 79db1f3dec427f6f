"""Servers behind one name: who counts as one, and when two are noticed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import orjson

from running.service import backend
from specmux_aggregator.backend_sources.servers import ANEW, ServerSet
from specmux_aggregator.http.messages import Coding, ETag
from specmux_aggregator.model.server_union import Hash
from specmux_aggregator.upstream.client import BackendRoot, NotModified, Payload
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

URL = "http://10.0.0.1:1"
BACKEND = backend("lb", URL)


class FakeServer:
    """Stands in for a ``BackendClient``: a connection reaches one server, in one state."""

    def __init__(self, release: str, keys: str) -> None:
        self.release = release
        self.roots = 0
        self.upcoming: list[str] = []
        """What it publishes after each of the next requests for its root."""
        self.publish(keys)

    def publish(self, keys: str) -> None:
        offers = {GroupVersion(f"apis/{key}.io/v1"): Hash(f"{key}{self.release}") for key in keys}
        self.seen = BackendRoot(MappingProxyType(offers), ETag(f"{keys}{self.release}"), ())

    async def root(self, *, etag: object = None) -> BackendRoot | NotModified:
        self.roots += 1
        answer = NotModified() if etag == self.seen.etag else self.seen
        if self.upcoming:
            self.publish(self.upcoming.pop(0))
        return answer

    async def discovery(self, path: str, accept: str) -> Payload:
        return Payload(orjson.dumps({"gitVersion": self.release}), Coding.IDENTITY, JSON, None)

    async def close(self) -> None:
        pass


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def balanced(old: FakeServer, *starting: FakeServer) -> Iterator[FakeServer]:
    """Connections by turns to the old server and to the new one, four for each of its states."""
    for state in starting[:-1]:
        for _ in range(4):
            yield from (old, state)
    for _ in itertools.count():
        yield from (old, starting[-1])


def behind_one_name(connections: Iterator[FakeServer], now: Clock) -> ServerSet:
    def connect(*, address: object = None) -> Any:
        return next(connections)

    return ServerSet({URL: connect}, now=now)


def seen(servers: ServerSet) -> list[tuple[str | None, int]]:
    return [(server.version, len(server.offers)) for server in servers.servers()]


async def test_starting_server_counts_once_when_it_is_up() -> None:
    old = FakeServer("v1.34.4", "ab")
    states = [FakeServer("v1.37.2", keys) for keys in ("a", "ab", "abc", "abcd")]
    connections = itertools.chain([states[0]], balanced(old, *states))
    servers = behind_one_name(connections, clock := Clock())
    await servers.root(BACKEND)
    states[0].publish("")  # it lost something: another may be there
    await servers.root(BACKEND)
    assert servers.are_known
    for _ in range(30):
        clock.seconds += 1
        await servers.root(BACKEND)
    assert seen(servers) == [("v1.37.2", 4), ("v1.34.4", 2)]


async def test_two_releases_side_by_side_are_noticed_though_the_usual_connection_stays() -> None:
    old, new = FakeServer("v1.34.4", "ab"), FakeServer("v1.37.2", "bc")
    servers = behind_one_name(itertools.chain([old], balanced(new, old)), clock := Clock())
    checks = 0
    while not servers.are_known and checks < 6:
        checks += 1
        await servers.root(BACKEND)
        clock.seconds += ANEW
    assert seen(servers) == [("v1.37.2", 2), ("v1.34.4", 2)]
    root = await servers.root(BACKEND)
    assert isinstance(root, BackendRoot)
    hashes = {"apis/a.io/v1": "av1.34.4", "apis/b.io/v1": "bv1.37.2", "apis/c.io/v1": "cv1.37.2"}
    assert root.offers == hashes, "what any has, of the newest that has it"


async def test_server_that_changes_between_two_requests_keeps_its_version() -> None:
    """It was taken for two that answer by turns, and the versions of all were unknown from then on."""
    old, new = FakeServer("v1.34.4", "ab"), FakeServer("v1.37.2", "bc")
    servers = behind_one_name(itertools.chain([old], balanced(new, old)), clock := Clock())
    for _ in range(6):
        clock.seconds += ANEW
        await servers.root(BACKEND)
    new.upcoming = ["bcd", "bcde", "bcdef"]
    for _ in range(2):
        clock.seconds += ANEW
        await servers.root(BACKEND)
    assert new.upcoming == []
    assert {version for version, _ in seen(servers)} == {"v1.37.2", "v1.34.4"}
    for _ in range(12):
        clock.seconds += ANEW
        await servers.root(BACKEND)
    assert seen(servers) == [("v1.37.2", 5), ("v1.34.4", 2)]


async def test_server_that_is_left_alone_is_one_again() -> None:
    old, new = FakeServer("v1.34.4", "ab"), FakeServer("v1.37.2", "bc")
    connections = itertools.chain([old], itertools.islice(balanced(new, old), 20), itertools.repeat(new))
    servers = behind_one_name(connections, clock := Clock())
    was_known = False
    for _ in range(60):
        root = await servers.root(BACKEND)
        was_known |= servers.are_known
        clock.seconds += ANEW
    assert was_known
    assert not servers.are_known
    assert isinstance(root, BackendRoot)
    assert root.offers == new.seen.offers


async def test_servers_that_disagree_for_a_moment_are_one() -> None:
    """Both follow one cluster, in which a definition appeared."""
    first, second = FakeServer("v1.37.2", "a"), FakeServer("v1.37.2", "a")
    servers = behind_one_name(itertools.chain([first], balanced(second, first)), clock := Clock())
    await servers.root(BACKEND)
    second.publish("ab")
    clock.seconds += ANEW
    assert await servers.root(BACKEND) == first.seen
    first.publish("ab")
    for _ in range(5):
        clock.seconds += ANEW
        root = await servers.root(BACKEND)
        assert not servers.are_known
    assert root == first.seen


async def test_check_by_a_new_connection_takes_the_place_of_another() -> None:
    server = FakeServer("v1.37.2", "a")
    servers = behind_one_name(itertools.repeat(server), clock := Clock())
    for _ in range(10):
        await servers.root(BACKEND)
        clock.seconds += ANEW
    assert server.roots == 10

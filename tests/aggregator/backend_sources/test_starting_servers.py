"""A server that starts behind a balancer, whose root grows, counts once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import orjson

from specmux_aggregator.backend_sources.peers import Peers
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.server_union import Hash
from specmux_aggregator.upstream.client import BackendRoot, Payload
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON


class FakeServer:
    """Stands in for a ``BackendClient``: a new connection reaches one server, in one state."""

    def __init__(self, release: str, keys: str) -> None:
        self.release = release
        offers = {GroupVersion(f"apis/{key}.io/v1"): Hash(f"{key}{release}") for key in keys}
        self.seen = BackendRoot(MappingProxyType(offers), None, ())

    async def root(self, *, etag: object = None) -> BackendRoot:
        return self.seen

    async def discovery(self, path: str, accept: str) -> Payload:
        return Payload(orjson.dumps({"gitVersion": self.release}), Coding.IDENTITY, JSON, None)

    async def close(self) -> None:
        pass


def balanced(old: FakeServer, *starting: FakeServer) -> Iterator[FakeServer]:
    """Connections by turns to the old server and to the new one, four for each of its states."""
    for state in starting[:-1]:
        for _ in range(4):
            yield from (old, state)
    for _ in itertools.count():
        yield from (old, starting[-1])


async def test_starting_server_counts_once_when_it_is_up() -> None:
    old = FakeServer("v1.34.4", "ab")
    states = [FakeServer("v1.37.2", keys) for keys in ("a", "ab", "abc", "abcd")]
    connections = balanced(old, *states)

    def connect(*, address: object = None) -> Any:
        return next(connections)

    peers = Peers({"http://10.0.0.1:1": connect})
    await peers.settled(states[0].seen, old.seen)
    assert peers.are_known
    for _ in range(30):
        await peers.current()
    assert [(server.version, len(server.offers)) for server in peers.servers()] == [
        ("v1.37.2", 4),
        ("v1.34.4", 2),
    ]

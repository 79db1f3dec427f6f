"""The servers of a backend put together: of any order the same, the newest release first, nothing lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.server_union import (
    BackendServer,
    Hash,
    Offers,
    difference_text,
    release_of,
    union_of,
)
from specmux_converters.group_versions import GroupVersion

KEYS = st.sampled_from([GroupVersion(f"apis/{name}/v1") for name in "abcde"])
OFFERS = st.dictionaries(KEYS, st.one_of(st.none(), st.sampled_from([Hash("1"), Hash("2"), Hash("3")])))
VERSIONS = st.sampled_from([None, "v1.34.1", "v1.35.0-rc.1", "v1.35.0", "v1.35.2+k3s1", "no version"])
FAILURES = st.sampled_from([None, Failure(Cause.TIMEOUT, "silent")])
SERVERS = st.lists(
    st.builds(BackendServer, st.sampled_from("stu"), OFFERS, VERSIONS, FAILURES, st.booleans()),
    min_size=1,
    max_size=5,
)


@given(servers=SERVERS, data=st.data())
def test_order_of_servers_does_not_matter(servers: list[BackendServer], data: st.DataObject) -> None:
    assert union_of(servers) == union_of(data.draw(st.permutations(servers)))


@given(servers=SERVERS)
def test_union_has_what_any_server_has_and_nothing_else(servers: list[BackendServer]) -> None:
    union = union_of(servers)
    assert union.keys() == {key for server in servers for key in server.offers}
    assert all(any(server.offers.get(key, "") == hash for server in servers) for key, hash in union.items())


@given(servers=SERVERS)
def test_newest_release_that_has_a_group_version_wins(servers: list[BackendServer]) -> None:
    for key, hash in union_of(servers).items():
        having = [server for server in servers if key in server.offers]
        if any(server.is_steady for server in having):
            having = [server for server in having if server.is_steady]  # those that can be asked
        newest = max(release_of(server.version) for server in having)
        assert hash in {server.offers[key] for server in having if release_of(server.version) == newest}


@given(servers=SERVERS)
def test_union_of_the_union_is_the_union(servers: list[BackendServer]) -> None:
    union = union_of(servers)
    assert union_of([*servers, BackendServer("all", union, "v9.0.0")]) == union


@given(servers=SERVERS, other=OFFERS)
def test_document_of_one_group_version_moves_no_other(servers: list[BackendServer], other: Offers) -> None:
    """A server whose document of one group-version changes, as ``apis`` does at each request, wins or loses
    that one alone."""
    server = servers[0]
    changed = {key: other.get(key, hash) for key, hash in server.offers.items()}
    after = union_of([replace(server, offers=changed), *servers[1:]])
    before = union_of(servers)
    moved = {key for key in before if before[key] != after[key]}
    assert moved <= {key for key in changed if changed[key] != server.offers[key]}


@given(servers=SERVERS, data=st.data())
def test_exchanging_servers_one_by_one_never_takes_a_group_version_away(
    servers: list[BackendServer], data: st.DataObject
) -> None:
    """From one release to the next, where the next has all that the one before has: what is published only
    ever grows, and each exchange changes it once at most."""
    old = replace(servers[0], version="v1.34.4", is_steady=True)
    new = replace(old, offers={**old.offers, **data.draw(OFFERS)}, version="v1.37.2")
    running = [old] * 3
    unions = [union_of(running)]
    for index in data.draw(st.permutations(range(3))):
        running[index] = replace(running[index], is_steady=False)  # it ends
        unions.append(union_of(running))
        running[index] = new
        unions.append(union_of(running))
    changes = sum(before != after for before, after in pairwise(unions))
    assert changes <= 3
    assert all(before.keys() <= after.keys() for before, after in pairwise(unions))


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        (None, "v0.0.1"),
        ("what", "v1.0"),
        ("v1.9.3", "v1.10.0"),
        ("v1.35.0-alpha.1", "v1.35.0"),
        ("v1.35.0", "v1.35.1"),
        ("v1.34.9+eks", "v1.35.0"),
    ],
)
def test_releases_are_ordered_as_semantic_versions(lower: str | None, higher: str) -> None:
    assert release_of(lower) < release_of(higher)


def test_difference_names_releases_and_what_not_all_have() -> None:
    a, b = GroupVersion("apis/a/v1"), GroupVersion("apis/new/v1")
    servers = [
        BackendServer("1", {a: Hash("1")}, "v1.36.2"),
        BackendServer("2", {a: Hash("1")}, "v1.36.2"),
        BackendServer("3", {a: Hash("2"), b: Hash("3")}, "v1.37.0"),
    ]
    assert difference_text(servers) == (
        "3 servers: 2 × v1.36.2, 1 × v1.37.0; apis/new/v1 on one of them; different documents: apis/a/v1"
    )

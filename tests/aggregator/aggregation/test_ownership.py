from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import orjson

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_converters.group_versions import GroupVersion

APPS, BATCH = GroupVersion("apis/apps/v1"), GroupVersion("apis/batch/v1")


def observation(
    name: str,
    *keys: GroupVersion,
    priority: int = 0,
    owned: frozenset[GroupVersion] | None = None,
    found: ClusterFacts | None = None,
) -> Observation:
    backend = Backend(
        name=BackendName(name), url="http://x", priority=priority, group_versions=owned, found=found
    )
    offers = {key: Offer(hash=Hash(f"{name}1"), provenance=Provenance.NATIVE) for key in keys}
    return Observation(backend=backend, offers=offers, attempted=True)


def merged(*observations: Observation):  # type: ignore[no-untyped-def]
    return merge({item.backend.name: item for item in observations}, generation=1)


def test_root_lists_every_group_version_sorted_with_its_hash_url() -> None:
    snapshot = merged(observation("b", BATCH), observation("a", APPS))
    assert snapshot.root_json == (
        b'{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=a1"},'
        b'"apis/batch/v1":{"serverRelativeURL":"/openapi/v3/apis/batch/v1?hash=b1"}}}'
    )


def test_owner_follows_from_priority_then_name_whatever_the_order() -> None:
    rivals = [observation("a", APPS), observation("b", APPS, priority=5), observation("c", APPS, priority=5)]
    for order in permutations(rivals):
        snapshot = merged(*order)
        assert snapshot.entries[APPS].owner == "b"
        (conflict,) = snapshot.conflicts
        assert (conflict.group_version, conflict.winner, conflict.losers) == (APPS, "b", ("c", "a"))


def test_backend_publishes_only_what_it_owns() -> None:
    snapshot = merged(observation("a", APPS, BATCH, owned=frozenset({BATCH})))
    assert list(snapshot.entries) == [BATCH]


def test_backends_of_the_configuration_win_over_found_ones_whatever_their_priority() -> None:
    rivals = [observation("a", APPS, priority=99, found=ClusterFacts()), observation("z", APPS)]
    for order in permutations(rivals):
        snapshot = merged(*order)
        assert snapshot.entries[APPS].owner == "z"
        assert [conflict.losers for conflict in snapshot.conflicts] == [("a",)]


def test_fallback_publishes_what_no_other_has_and_is_no_conflict() -> None:
    fallback = observation("a", APPS, BATCH, priority=99, found=ClusterFacts(is_fallback=True))
    for order in permutations([fallback, observation("b", BATCH, found=ClusterFacts())]):
        snapshot = merged(*order)
        assert {key: entry.owner for key, entry in snapshot.entries.items()} == {APPS: "a", BATCH: "b"}
        assert snapshot.conflicts == ()


def test_an_extension_apiserver_that_refuses_us_gives_way_and_refused_definitions_do_not() -> None:
    refused = Failure(Cause.CREDENTIALS, "answered 403", status=403)
    fallback = observation("a", APPS, found=ClusterFacts(is_fallback=True))
    for kind, owner in ((BackendKind.AUTO, "a"), (BackendKind.CRDS, "b")):
        found = observation("b", APPS, found=ClusterFacts())
        refusing = replace(found, backend=replace(found.backend, kind=kind), failure=refused)
        assert merged(fallback, refusing).entries[APPS].owner == owner


def test_found_backend_does_not_publish_what_is_excluded() -> None:
    found = observation("a", APPS, BATCH, found=ClusterFacts(excluded=frozenset({APPS})))
    assert list(merged(found).entries) == [BATCH]


def test_failed_backend_keeps_its_last_good_offers() -> None:
    good = observation("a", APPS)
    failed = Observation(
        backend=good.backend, offers=good.offers, attempted=True, failure=Failure(Cause.TIMEOUT, "")
    )
    assert merged(failed).root_json == merged(good).root_json


def test_root_hash_changes_with_its_content_only() -> None:
    one, same = merged(observation("a", APPS)), merged(observation("a", APPS, priority=3))
    other = merged(observation("a", APPS), observation("b", BATCH))
    assert one.root == same.root != other.root


def test_root_without_backends_is_an_empty_map() -> None:
    assert orjson.loads(merged().root_json) == {"paths": {}}

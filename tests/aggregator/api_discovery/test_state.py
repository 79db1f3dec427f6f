"""What stays known when a backend cannot be asked, and for how long it is current."""

from __future__ import annotations

from dataclasses import replace

import pytest

from data.discovery_values import DOWN, knowledge, resource, told, told_but
from specmux_aggregator.api_discovery.backend_knowledge import Freshness, Knowledge, after
from specmux_aggregator.model.backend import Backend, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.group_versions import GroupVersion

KEY = GroupVersion("apis/g/v1")
GRACE = 300.0


def freshness(known: Knowledge, now: float) -> Freshness:
    return known.listings[KEY].freshness(now, GRACE)


def test_list_is_current_for_the_grace_and_then_stale_with_its_resources_when_the_backend_is_down() -> None:
    up = knowledge("a", KEY)
    down = after(up, DOWN, now=1000.0)
    assert freshness(down, 1000.0 + GRACE - 1) is Freshness.CURRENT
    assert freshness(down, 1000.0 + GRACE) is Freshness.STALE
    assert down.listings[KEY].resources == up.listings[KEY].resources
    assert (down.failure, down.attempted) == (DOWN, True)


def test_grace_starts_at_the_first_failure_when_the_cause_changes() -> None:
    down = after(knowledge("a", KEY), DOWN, now=1000.0)
    other = after(down, Failure(Cause.TIMEOUT, "slow"), now=1200.0)
    assert freshness(other, 1000.0 + GRACE) is Freshness.STALE
    lapse = other.listings[KEY].lapse
    assert lapse is not None
    assert (lapse.since, lapse.failure.cause) == (1000.0, Cause.TIMEOUT)


def test_nothing_changes_when_a_failure_repeats_or_the_same_is_told() -> None:
    up = knowledge("a", KEY)
    assert after(up, told(KEY), now=5.0) is up
    down = after(up, DOWN, now=10.0)
    assert after(down, Failure(DOWN.cause, "in other words"), now=20.0) is down


def test_list_is_current_again_when_the_backend_is_back() -> None:
    up = knowledge("a", KEY)
    back = after(after(up, DOWN, now=10.0), told(KEY), now=1000.0)
    assert back == up


def test_group_version_is_gone_when_the_backend_no_longer_tells_it() -> None:
    assert dict(after(knowledge("a", KEY, "apis/g/v2"), told(KEY), now=1.0).listings) == {
        KEY: knowledge("a", KEY).listings[KEY]
    }


def test_group_version_that_is_not_listed_is_gone_when_that_has_lasted() -> None:
    other = GroupVersion("apis/g/v2")
    known = knowledge("a", KEY, other)
    less = after(known, told(KEY), now=10.0, grace=15.0)
    assert set(less.listings) == {KEY, other}
    assert less.listings[other].freshness(20.0, GRACE) is Freshness.CURRENT
    assert after(less, told(KEY), now=20.0, grace=15.0) is less
    assert set(after(less, told(KEY), now=25.0, grace=15.0).listings) == {KEY}
    assert after(less, told(KEY, other), now=24.0, grace=15.0).listings == known.listings


def test_what_is_not_listed_counts_from_when_its_backend_answered_again() -> None:
    other = GroupVersion("apis/g/v2")
    down = after(knowledge("a", KEY, other), DOWN, now=10.0, grace=15.0)
    less = after(down, told(KEY), now=100.0, grace=15.0)
    assert set(less.listings) == {KEY, other}
    assert set(after(less, told(KEY), now=115.0, grace=15.0).listings) == {KEY}


def test_what_the_cluster_says_exists_stays_listed() -> None:
    other = GroupVersion("apis/g/v2")
    found = ClusterFacts(existing=frozenset({other}))
    known = knowledge("a", KEY, other)
    known = replace(known, backend=replace(known.backend, found=found))
    less = after(known, told(KEY), now=10.0, grace=15.0)
    assert set(after(less, told(KEY), now=1000.0, grace=15.0).listings) == {KEY, other}


def test_configured_group_versions_exist_and_are_stale_at_once_when_the_backend_never_answered() -> None:
    backend = Backend(name=BackendName("a"), group_versions=frozenset({KEY}))
    down = after(Knowledge(backend=backend), DOWN, now=0.0)
    assert freshness(down, 0.0) is Freshness.STALE
    assert not down.listings[KEY].is_known


@pytest.mark.parametrize("shown", [(), (resource("other"),)])
def test_last_known_resources_stay_when_the_backend_calls_its_own_list_stale(shown: tuple[()]) -> None:
    up = knowledge("a", KEY)
    stale = after(up, told_but(KEY, resources=shown), now=100.0)
    assert stale.listings[KEY].resources == up.listings[KEY].resources
    assert freshness(stale, 100.0) is Freshness.CURRENT
    assert freshness(stale, 100.0 + GRACE) is Freshness.STALE
    assert stale.failure is None


def test_what_a_stale_list_shows_is_taken_when_nothing_else_is_known() -> None:
    fresh = Knowledge(backend=Backend(name=BackendName("a")))
    shown = after(fresh, told_but(KEY, resources=(resource(),)), now=0.0)
    assert (shown.listings[KEY].is_known, freshness(shown, 0.0)) == (True, Freshness.CURRENT)
    hidden = after(fresh, told_but(KEY), now=0.0)
    assert (hidden.listings[KEY].is_known, freshness(hidden, 0.0)) == (False, Freshness.STALE)
    assert after(hidden, told_but(KEY, resources=(resource(),)), now=9.0).listings[KEY].is_known

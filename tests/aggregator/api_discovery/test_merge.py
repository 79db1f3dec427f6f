"""Discovery of many backends as one: owners, order, conflicts, what time changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from data.discovery_values import DOWN, knowledge
from specmux_aggregator.api_discovery.backend_knowledge import Freshness, Knowledge, after
from specmux_aggregator.api_discovery.directory import Directory
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.model.backend import Backend, BackendName, ClusterFacts
from specmux_aggregator.model.snapshot import OwnershipConflict
from specmux_converters.group_versions import GroupVersion

GRACE = 300.0
KEY = GroupVersion("apis/w/v1")


def merged(*known: Knowledge, now: float = 0.0) -> Directory:
    return merge(known, now=now, grace=GRACE)


def shown(directory: Directory) -> list[str]:
    return [f"{version.group_version} {version.owner}" for version in directory.versions()]


def test_core_group_stands_apart_and_groups_follow_priority_then_name() -> None:
    directory = merged(
        knowledge("crds", "apis/zeta.com/v1", "apis/alpha.com/v1"),
        knowledge("api", "apis/apps/v1", "api/v1", "apis/apiregistration.k8s.io/v1"),
        knowledge("special", "apis/metrics.k8s.io/v1", group_priority=100, version_priority=100),
        knowledge("first", "apis/first.com/v1", group_priority=30000, version_priority=1),
    )
    assert directory.core is not None
    assert [version.name for version in directory.core.versions] == ["v1"]
    assert [group.name for group in directory.groups] == [
        "first.com", "apiregistration.k8s.io", "apps", "alpha.com", "zeta.com", "metrics.k8s.io"
    ]  # fmt: skip


def test_group_has_the_highest_priority_among_its_versions_when_two_backends_share_it() -> None:
    directory = merged(
        knowledge("low", "apis/m/v1", group_priority=1, version_priority=1),
        knowledge("high", "apis/m/v1beta1", group_priority=2000, version_priority=20),
        knowledge("other", "apis/a/v1"),
    )
    assert shown(directory) == ["apis/m/v1beta1 high", "apis/m/v1 low", "apis/a/v1 other"]


def test_versions_compare_when_their_priorities_are_equal() -> None:
    (group,) = merged(knowledge("a", "apis/g/v1alpha1", "apis/g/v1", "apis/g/v2beta1", "apis/g/v2")).groups
    assert [version.name for version in group.versions] == ["v2", "v1", "v2beta1", "v1alpha1"]


def test_owner_follows_the_rule_of_documents_and_losers_are_told() -> None:
    key = "apis/g/v1"
    directory = merged(
        knowledge("b", key), knowledge("a", key), knowledge("z", key, priority=1), knowledge("c", key)
    )
    assert shown(directory) == ["apis/g/v1 z"]
    losers = (BackendName("a"), BackendName("b"), BackendName("c"))
    assert directory.conflicts == (OwnershipConflict(GroupVersion(key), BackendName("z"), losers),)


def test_fallback_loses_without_a_conflict() -> None:
    api = knowledge("api", "apis/g/v1", "apis/g/v2", priority=9, found=ClusterFacts(is_fallback=True))
    directory = merged(api, knowledge("b", "apis/g/v1"))
    assert shown(directory) == ["apis/g/v2 api", "apis/g/v1 b"]
    assert directory.conflicts == ()


def test_group_version_is_left_out_when_the_backend_may_not_publish_it() -> None:
    owned = frozenset({GroupVersion("apis/g/v1")})
    assert shown(merged(knowledge("a", "apis/g/v1", "apis/g/v2", "api/v1", group_versions=owned))) == [
        "apis/g/v1 a"
    ]


def test_backend_that_cannot_tell_wins_only_where_nobody_can() -> None:
    key = GroupVersion("apis/g/v1")
    silent = after(
        Knowledge(backend=Backend(name=BackendName("a"), group_versions=frozenset({key}))), DOWN, now=0.0
    )
    assert shown(merged(silent, knowledge("b", key))) == ["apis/g/v1 b"]
    (version,) = merged(silent).versions()
    assert (version.owner, version.freshness, version.is_known) == ("a", Freshness.STALE, False)


def test_next_change_is_the_first_end_of_a_grace() -> None:
    first = after(knowledge("a", "apis/g/v1"), DOWN, now=10.0)
    second = after(knowledge("b", "apis/h/v1"), DOWN, now=20.0)
    assert merged(first, second, now=20.0).changes_at == 10.0 + GRACE
    later = merged(first, second, now=10.0 + GRACE)
    assert later.changes_at == 20.0 + GRACE
    assert [version.freshness.value for version in later.versions()] == ["Stale", "Current"]
    assert merged(first, second, now=1000.0).changes_at is None


def test_preferred_version_is_the_first_that_is_not_stale() -> None:
    down = after(knowledge("a", "apis/g/v2"), DOWN, now=0.0)
    both = (down, knowledge("b", "apis/g/v1"))
    (current,) = merged(*both, now=1.0).groups
    (stale,) = merged(*both, now=GRACE).groups
    assert (current.preferred.name, stale.preferred.name) == ("v2", "v1")
    assert [version.name for version in stale.versions] == ["v2", "v1"]
    (all_stale,) = merged(down, now=GRACE).groups
    assert all_stale.preferred.name == "v2"


def test_version_page_is_that_of_the_first_backend_which_has_one() -> None:
    directory = merged(
        knowledge("a"), knowledge("b", version=b'{"b":1}'), knowledge("c", version=b'{"c":1}', priority=1)
    )
    assert directory.version == b'{"c":1}'
    assert merged(knowledge("a")).version is None


def test_result_is_the_same_in_whatever_order_backends_answered() -> None:
    known = [knowledge(name, "apis/g/v1", f"apis/{name}/v1") for name in "abc"]
    assert merged(*known) == merged(*reversed(known))


def of_cluster(name: str, *keys: str, version: bytes | None, is_fallback: bool = False) -> Knowledge:
    known = knowledge(name, *keys)
    backend = replace(known.backend, found=ClusterFacts(is_fallback=is_fallback))
    return replace(known, backend=backend, version=version)


@pytest.mark.parametrize(
    ("apiserver", "configured", "told"),
    [(b"apiserver", b"configured", b"apiserver"), (None, b"configured", b"configured"), (None, None, None)],
)
def test_version_is_never_an_extension_apiservers(
    apiserver: bytes | None, configured: bytes | None, told: bytes | None
) -> None:
    directory = merged(
        of_cluster("v1.wardle", "apis/wardle/v1", version=b"wardle"),
        of_cluster("kubernetes", "api/v1", version=apiserver, is_fallback=True),
        replace(knowledge("mine", "apis/mine/v1"), version=configured),
    )
    assert directory.version == told


def test_apiserver_that_stands_in_is_no_party_to_a_conflict() -> None:
    silent = after(
        Knowledge(
            backend=Backend(name=BackendName("v1.w"), group_versions=frozenset({KEY}), found=ClusterFacts())
        ),
        DOWN,
        now=0.0,
    )
    directory = merged(silent, of_cluster("kubernetes", KEY, version=None, is_fallback=True))
    assert shown(directory) == [f"{KEY} kubernetes"]
    assert directory.conflicts == ()

"""What we write, read by what we read: a specmux behind a specmux loses nothing."""

from __future__ import annotations

import orjson

from shared_data import documents, load
from specmux_aggregator.api_discovery import render
from specmux_aggregator.api_discovery.aggregated import parse_aggregated
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    after,
)
from specmux_aggregator.api_discovery.legacy import parse_core_versions, parse_groups, parse_resources
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.synthesis import synthesise

LIMITS = Limits()


def test_resources_of_a_whole_release_survive_both_forms() -> None:
    listings = {
        GroupVersion(key): synthesise(load(path), GroupVersion(key))
        for key, path in documents("1.35").items()
        if key.count("/") == (1 if key.startswith("api/") else 2)
    }
    assert sum(map(len, listings.values())) > 60
    backend = Backend(name=BackendName("a"))
    directory = merge(
        [after(Knowledge(backend=backend), BackendListings(DiscoverySource.AGGREGATED, listings), now=0.0)],
        now=0,
        grace=1,
    )
    read = {}
    for groups in ((directory.core,) if directory.core else (), directory.groups):
        body = orjson.dumps(render.aggregated_list(groups, version="v2"))
        lists = parse_aggregated(body, limits=LIMITS, max_group_versions=100)
        assert (lists.notes, lists.stale) == ((), frozenset())
        read |= lists.resources
    assert read == listings
    body = orjson.dumps(render.core_versions(directory))
    core, _ = parse_core_versions(body, limits=LIMITS, max_group_versions=100)
    groups_body = orjson.dumps(render.group_list(directory))
    others, _ = parse_groups(groups_body, limits=LIMITS, max_group_versions=100)
    assert {*core, *others} == set(listings)
    for version in directory.versions():
        body = orjson.dumps(render.resource_list(version))
        assert parse_resources(body, version.group_version, limits=LIMITS) == (version.resources, ())

"""What a source's kinds are called, for commands that take a kind from people."""

from __future__ import annotations

from specmux_aggregator.sources.source import Source
from specmux_schemas.built_in_names import built_in_names
from specmux_schemas.explain.kind_names import KindName, names_of
from specmux_schemas.order import discovery_rank
from specmux_schemas.resources import split
from specmux_schemas.synthesis import named


def kinds_of_source(source: Source, *, is_ordered: bool) -> list[KindName]:
    """The kinds that are served, in discovery's order: the server's own, where there is one."""
    resources = source.resources()
    found: list[KindName] = []
    for key in resources if is_ordered else sorted(resources, key=discovery_rank):
        group, _ = split(key) or ("", "")
        listed = resources[key]
        if not any(each.short_names for each in listed):
            listed = named(listed, built_in_names(group))
        found += names_of(listed, key)
    return found

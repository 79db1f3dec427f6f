"""A source's kinds by what people call them, and the documents that explaining one takes."""

from __future__ import annotations

from specmux_aggregator.errors import SpecmuxError
from specmux_converters.group_versions import split
from specmux_converters.order import discovery_rank
from specmux_converters.resources import GroupVersionKind
from specmux_tools.errors import UnknownKind
from specmux_tools.explanation.kind_names import KindName, KindReference, names_of
from specmux_tools.kind_lifecycles import built_in_kinds
from specmux_tools.kinds import KindSchema
from specmux_tools.sources.source import LoadedDocuments, Source


def kinds_of_source(source: Source, *, is_ordered: bool) -> list[KindName]:
    """The kinds that are served, in discovery's order: the server's own, where there is one."""
    resources = source.resources()
    found: list[KindName] = []
    for key in resources if is_ordered else sorted(resources, key=discovery_rank):
        group, _ = split(key) or ("", "")
        listed = resources[key]
        if not any(each.short_names for each in listed):
            # Aggregated discovery has the short names of Kubernetes' own kinds: most commands do without.
            from specmux_converters.synthesis import built_in_names, name_resources

            listed = name_resources(listed, built_in_names(group))
        found += names_of(listed, key)
    return found


def known_kinds(source: Source) -> list[GroupVersionKind]:
    """All kinds of a source, the preferred first; Kubernetes' own where it says none."""
    try:
        resources = source.resources()
    except SpecmuxError:
        return list(built_in_kinds())
    return [each.kind for key in sorted(resources, key=discovery_rank) for each in resources[key]]


def versions_of(asked: KindReference) -> list[KindName]:
    """The kind that was chosen, and the same in other versions of its group."""
    chosen = asked.chosen.kind
    same = (each for each in asked.others if (each.kind.group, each.kind.kind) == (chosen.group, chosen.kind))
    return [asked.chosen, *same]


def schema_of(loaded: LoadedDocuments, name: KindName) -> KindSchema:
    """Raises UnknownKind for one that discovery lists and no document describes."""
    found = loaded.documents.find(name.kind)
    if found is None:
        version = name.kind.api_version
        raise UnknownKind(f"no document describes {name.kind.kind} of {version}", name=name.kind.kind)
    return found

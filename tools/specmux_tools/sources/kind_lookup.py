"""A source's kinds by what people call them, and the documents that explaining one takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specmux_aggregator.errors import SpecmuxError
from specmux_converters.group_versions import split
from specmux_converters.order import discovery_rank
from specmux_converters.resources import GroupVersionKind, Resources
from specmux_tools.errors import UnknownKind
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.kind_names import KindName, KindReference, asked_for, names_of
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
            listed = _name_resources(listed, group)
        found += names_of(listed, key)
    return found


def _name_resources(resources: Resources, group: str) -> Resources:
    """With the short names that Kubernetes gives its own."""
    # Aggregated discovery has them: most commands do without.
    from specmux_converters.synthesis import built_in_names, name_resources

    return name_resources(resources, built_in_names(group))


def known_kinds(source: Source) -> list[GroupVersionKind]:
    """All kinds of a source, the preferred first; Kubernetes' own where it says none."""
    try:
        resources = source.resources()
    except SpecmuxError:
        return list(built_in_kinds())
    return [each.kind for key in sorted(resources, key=discovery_rank) for each in resources[key]]


def chosen_in(kinds: Sequence[KindName], subject: str, version: str) -> KindReference:
    """The kind and the field that ``TYPE[.FIELD...]`` names. Raises InvalidPath, UnknownKind."""
    return asked_for(kinds, parse(subject), version=version)


def versions_of(asked: KindReference) -> list[KindName]:
    """The kind that was chosen, and the same in other versions of its group."""
    chosen = asked.chosen.kind
    same = (each for each in asked.others if (each.kind.group, each.kind.kind) == (chosen.group, chosen.kind))
    return [asked.chosen, *same]


def loaded_for(source: Source, names: Iterable[KindName], *, schemas_only: bool = True) -> LoadedDocuments:
    """The documents of these kinds, and no other. ``schemas_only``: as for a source."""
    return source.load({each.group_version for each in names}, schemas_only=schemas_only)


def schema_of(loaded: LoadedDocuments, name: KindName) -> KindSchema:
    """Raises UnknownKind for one that discovery lists and no document describes."""
    found = loaded.documents.find(name.kind)
    if found is None:
        version = name.kind.api_version
        raise UnknownKind(f"no document describes {name.kind.kind} of {version}", name=name.kind.kind)
    return found

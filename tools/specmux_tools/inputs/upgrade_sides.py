"""Both sides of an upgrade, read once: what serves objects now, and what will."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, joined, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences import ServedSide, compare
from specmux_tools.inputs.diff_sides import Side, side_of, side_of_source
from specmux_tools.inputs.judged_objects import validator_of
from specmux_tools.inputs.validated_objects import Manifest
from specmux_tools.sources import SourceOptions
from specmux_tools.upgrades.roles import resources_of
from specmux_tools.upgrades.verdicts import UpgradeSides
from specmux_tools.validation.decoding.manifests import group_versions_in


@dataclass(frozen=True, slots=True)
class ReadSide:
    """``word`` is "" for the source that options name."""

    word: str
    side: Side


def read_side(word: str, source: SourceOptions) -> ReadSide:
    """Raises FileRefused, SpecmuxError."""
    side = side_of(word, source, group_versions=()) if word else side_of_source(source)
    return ReadSide(word, side)


def upgrade_sides(
    before: ReadSide,
    after: ReadSide,
    source: SourceOptions,
    *,
    own: Sequence[Document],
    wanted: Collection[GroupVersion] | None,
    release: str | None,
) -> UpgradeSides:
    """``own``: definitions among the objects. ``wanted``: group-versions of these; None is all."""
    old, new = (_only(each.side.served, wanted) for each in (before, after))
    return UpgradeSides(
        validator_of(before.word, before.side, source, own),
        validator_of(after.word, after.side, source, own, release=release),
        compare(old, new).places,
        resources_of(before.side.served),
        resources_of(after.side.served),
        tuple(_kinds(after.side.served)),
        {
            str((each.document.get("metadata") or {}).get("name")): each.document
            for each in after.side.sources
            if each.is_manifest
        },
    )


def group_versions_of(inputs: Iterable[Manifest]) -> frozenset[GroupVersion]:
    return frozenset(joined(*each) for item in inputs for each in group_versions_in(item.part))


def _only(served: ServedSide, wanted: Collection[GroupVersion] | None) -> ServedSide:
    if wanted is None:
        return served
    return ServedSide({name: each for name, each in served.group_versions.items() if name in wanted})


def _kinds(served: ServedSide) -> Iterable[GroupVersionKind]:
    for name, each in served.group_versions.items():
        group = split(name)
        if group is not None:
            for resource in each.resources.values():
                yield GroupVersionKind(*group, resource.kind)

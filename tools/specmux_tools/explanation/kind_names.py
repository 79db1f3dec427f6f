"""Names of kinds: kind, plural, singular or short name, in any case, optionally followed by the group.

If a name is ambiguous, discovery's order decides, and a full name precedes a short one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from specmux_converters.counted_nouns import list_first
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import discovery_rank
from specmux_converters.resources import GroupVersionKind, Resources
from specmux_tools.errors import InvalidPath, UnknownKind
from specmux_tools.explanation.field_path import Step, similar_to
from specmux_tools.kinds import kinds_of

LISTED: Final = 5
"""Most names listed in an error."""


@dataclass(frozen=True, slots=True)
class KindName:
    """A kind of a group-version's document, with all its names."""

    group_version: GroupVersion
    kind: GroupVersionKind
    names: tuple[str, ...]
    """Plural, singular and kind; only the kind if no resource is served."""
    short_names: tuple[str, ...]

    @property
    def is_resource(self) -> bool:
        return len(self.names) > 1


@dataclass(frozen=True, slots=True)
class KindReference:
    """The meaning of a text such as ``deploy.spec.replicas``."""

    chosen: KindName
    others: tuple[KindName, ...]
    """Other kinds with that name, in discovery's order."""
    steps: tuple[Step, ...]
    """The fields after the name."""


def kind_names(documents: Mapping[GroupVersion, Document]) -> tuple[KindName, ...]:
    """The kinds of all documents, in discovery's order."""
    keys = sorted(documents, key=discovery_rank)
    return tuple(each for key in keys for each in names_in(documents[key], key))


def names_in(document: Document, group_version: GroupVersion) -> Iterator[KindName]:
    """The kinds of one document: resources, then kinds without a resource."""
    # Discovery, or a stored index, makes it unnecessary.
    from specmux_converters.synthesis import resources_of

    resources = resources_of(document, group_version)
    known = {each.kind for each in kinds_of(document, group_version)}
    yield from names_of(resources, group_version, known)
    served = {each.kind for each in resources}
    for kind in sorted(known - served):
        yield KindName(group_version, kind, (kind.kind,), ())


def names_of(
    resources: Resources, group_version: GroupVersion, known: Iterable[GroupVersionKind] | None = None
) -> Iterator[KindName]:
    """The kinds of resources in discovery; with ``known``, only those."""
    kinds = None if known is None else frozenset(known)
    for each in resources:
        if kinds is None or each.kind in kinds:
            names = (each.name, each.singular or each.kind.kind.lower(), each.kind.kind)
            yield KindName(group_version, each.kind, names, each.short_names)


def find_kind(kinds: Sequence[KindName], steps: Sequence[Step], *, version: str = "") -> KindReference:
    """The kind named by the first step, optionally followed by a group (``deployments.apps.spec``).

    ``version`` ("apps/v1") restricts the choice to that group-version. Raises UnknownKind with similar names.
    """
    if not steps:
        raise InvalidPath("no kind, resource or short name is given")
    name = steps[0].name
    among = [each for each in kinds if not version or each.kind.api_version == version]
    wanted = name.casefold()
    whole = [each for each in among if wanted in map(str.casefold, each.names)]
    short = [each for each in among if wanted in map(str.casefold, each.short_names) and each not in whole]
    found = whole + short
    if not found:
        raise _unknown(name, version, kinds, among)
    for each in found:
        group = each.kind.group.split(".") if each.kind.group else []
        if group and [step.name for step in steps[1 : 1 + len(group)]] == group:
            same = tuple(other for other in found if other is not each)
            return KindReference(each, same, tuple(steps[1 + len(group) :]))
    return KindReference(found[0], tuple(found[1:]), tuple(steps[1:]))


def _unknown(name: str, version: str, kinds: Sequence[KindName], among: Sequence[KindName]) -> UnknownKind:
    """Suggests another place of the kind, or lists what exists if no name is similar."""
    similar = similar_to(name, (each for kind in among for each in (kind.names[0], kind.kind.kind)))
    elsewhere = {each.kind.api_version for each in kinds if name.casefold() in map(str.casefold, each.names)}
    known = {each.kind.kind for each in among}
    where = f" in {version}" if version else ""
    hint = ""
    if elsewhere:
        hint = f"; it is in {list_first(sorted(elsewhere), LISTED)}"
    elif not kinds:
        hint = "; the documents describe no kind at all"
    elif known and not similar:
        hint = f"; known: {list_first(sorted(known), LISTED)}"
    return UnknownKind(f"no kind, resource or short name {name!r}{where}{hint}", name=name, similar=similar)

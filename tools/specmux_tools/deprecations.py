"""Warnings of an apiserver: versions of kinds that are deprecated, built in or by a definition.

The facts about built-in kinds are those of k8s.io/api 0.30 to 0.37 (APILifecycleDeprecated and its like).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pkgutil import get_data

from specmux_converters.document import Document
from specmux_converters.json_values import mapping, objects, text, within
from specmux_converters.releases import PREVIEW, minor_release
from specmux_converters.resources import GroupVersionKind


def deprecation_of(
    kind: GroupVersionKind, definitions: Iterable[Document], *, release: str | None
) -> str | None:
    """The text of the Warning that an apiserver of ``release`` sends with such an object; None for none.

    ``definitions``: those that may define the kind; ``release`` None is the newest."""
    for definition in definitions:
        spec = mapping(definition.get("spec"))
        if (spec.get("group"), within(spec, "names").get("kind")) == (kind.group, kind.kind):
            for version in objects(spec.get("versions")):
                if version.get("name") == kind.version and version.get("deprecated") is True:
                    said = f"{kind.group}/{kind.version} {kind.kind} is deprecated"
                    return text(version.get("deprecationWarning")) or said
            return None
    return _built_in(kind, minor_release(release, newest=PREVIEW))


def _built_in(kind: GroupVersionKind, minor: int) -> str | None:
    version = kind.api_version
    said = _lifecycles().get((version, kind.kind))
    if said is None:
        return None
    deprecated, removed, replacement, renamed = (*said, "", "", "")[:4]
    if int(deprecated.partition(".")[2]) > minor:
        return None
    gone = f", unavailable in v{removed}+" if removed and removed != "-" else ""
    step = f"; use {replacement} {renamed or kind.kind}" if replacement else ""
    return f"{version} {kind.kind} is deprecated in v{deprecated}+{gone}{step}"


@cache
def _lifecycles() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """A line has the group-version, its kinds, since when they are deprecated, the release that removes them
    or "-", what replaces them, and its kind where it is another."""
    found = {}
    for line in (get_data(__package__, "deprecated_kinds.txt") or b"").decode().splitlines():
        version, kinds, *said = line.split()
        found.update(dict.fromkeys(((version, kind) for kind in kinds.split(",")), tuple(said)))
    return found

"""Short names and categories of kube-apiserver's own resources.

No document contains them. They are those of Kubernetes 1.35 (``pkg/registry/*/*/storage``) and of
PodSecurityPolicy; other resources have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Final

from specmux_schemas.resources import ResourceNames

_NO_NAMES: Final[Mapping[str, ResourceNames]] = {}


def built_in_names(group: str) -> Mapping[str, ResourceNames]:
    """By plural; empty for a group that does not belong to Kubernetes."""
    return _by_group().get(group, _NO_NAMES)


@cache
def _by_group() -> Mapping[str, Mapping[str, ResourceNames]]:
    """A line has the resource with its group, its short names, and its categories."""
    found: dict[str, dict[str, ResourceNames]] = {}
    for line in (get_data(__package__, "built_in_names.txt") or b"").decode().splitlines():
        resource, short, *categories = line.split()
        plural, _, group = resource.partition(".")
        short_names = () if short == "-" else tuple(short.split(","))
        names = ResourceNames("", short_names, tuple(categories))
        found.setdefault(group, {})[plural] = names
    return found

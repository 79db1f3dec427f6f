"""Releases of Kubernetes whose rules are known, by minor version."""

from __future__ import annotations

import re
from typing import Any, Final

OLDEST: Final = 30
NEWEST: Final = 37
RELEASES: Final = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))


class UnknownRelease(ValueError):
    """A release whose rules are not known."""


def minor_release(release: str | None) -> int:
    """The minor version in "1.34" or "v1.34"; None is the newest. Raises UnknownRelease."""
    if release is None:
        return NEWEST
    if release.removeprefix("v") not in RELEASES:
        raise UnknownRelease(f'no release "{release}": give one of 1.{OLDEST} to 1.{NEWEST}')
    return int(release.rpartition(".")[2])


def release_in(version: Any) -> str | None:
    """ "v1.34" of a version ("v1.34.4-eks-1"); None if it is no release of Kubernetes."""
    match = re.match(r"v?(1\.\d{1,3})(?!\d)", version) if isinstance(version, str) else None
    return None if match is None else f"v{match[1]}"


def nearest_minor(version: Any) -> int:
    """The minor version of the known release nearest to a version ("v1.34.4-eks-1"), by default the newest:
    for a version that is no release of Kubernetes."""
    release = release_in(version)
    return NEWEST if release is None else min(max(int(release.removeprefix("v1.")), OLDEST), NEWEST)

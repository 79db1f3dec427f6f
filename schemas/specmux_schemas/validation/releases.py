"""Releases of Kubernetes whose rules are known, by their minor number."""

from __future__ import annotations

from typing import Final

OLDEST: Final = 30
NEWEST: Final = 37
RELEASES: Final = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))


class UnknownRelease(ValueError):
    """A release that there is no table for."""


def minor_release(release: str) -> int:
    """Of "1.34". Raises UnknownRelease."""
    if release.removeprefix("v") not in RELEASES:
        raise UnknownRelease(f'no release "{release}": give one of 1.{OLDEST} to 1.{NEWEST}')
    return int(release.rpartition(".")[2])

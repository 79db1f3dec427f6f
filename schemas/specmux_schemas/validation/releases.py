"""Releases of Kubernetes with known rules, by minor version."""

from __future__ import annotations

from typing import Final

from specmux_converters.release import release_in

OLDEST: Final = 30
NEWEST: Final = 37
RELEASES: Final = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))


class UnknownRelease(ValueError):
    """A release without a table."""


def minor_release(release: str) -> int:
    """The minor version in "1.34". Raises UnknownRelease."""
    if release.removeprefix("v") not in RELEASES:
        raise UnknownRelease(f'no release "{release}": give one of 1.{OLDEST} to 1.{NEWEST}')
    return int(release.rpartition(".")[2])


def nearest_release(version: str | None) -> str | None:
    """The known release nearest to a ``gitVersion``; None if it contains none."""
    found = release_in(version)
    return None if found is None or found[0] != 1 else f"1.{min(max(found[1], OLDEST), NEWEST)}"

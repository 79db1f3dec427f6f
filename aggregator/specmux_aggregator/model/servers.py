"""The servers of one backend: what each offers, and what the backend offers for all of them. Pure.

A control plane has several apiservers, an extension apiserver several replicas; during an upgrade they have
two versions. Kubernetes merges their discovery (KEP-4020) and not their OpenAPI documents. Here the newest
release has a group-version, and what one server has stays until the last of them lost it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NewType

import orjson

from specmux_aggregator.model.failure import Failure
from specmux_converters.group_versions import GroupVersion

Hash = NewType("Hash", str)

Offers = Mapping[GroupVersion, Hash | None]

NAMED: Final = 3
"""Group-versions that a line about differences names."""

_RELEASE: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BackendServer:
    """One server as it was last seen. ``name``: where it is asked, or a digest of what it offers where one
    address hides several. ``version``: its ``gitVersion``, where it is known. ``failure``: of the last time
    that it was asked. ``is_steady``: it has not failed for a while."""

    name: str
    offers: Offers
    version: str | None = None
    failure: Failure | None = None
    is_steady: bool = True

    @property
    def standing(self) -> tuple[bool, tuple[int, ...], int]:
        """The highest has a group-version: one that can be asked for it, then the release, then how much it
        offers."""
        return self.is_steady, release_of(self.version), len(self.offers)

    @property
    def rank(self) -> tuple[bool, tuple[int, ...], int, str, str]:
        """Where it stands in lists: of equals what they are decides."""
        return *self.standing, digest_of(self.offers), self.name


@lru_cache(maxsize=32)
def git_version(page: bytes | None) -> str | None:
    """The ``gitVersion`` of the object at ``/version``; None where there is none."""
    try:
        value = orjson.loads(page or b"null")
    except orjson.JSONDecodeError:
        return None
    version = value.get("gitVersion") if isinstance(value, dict) else None
    return version if isinstance(version, str) else None


def release_of(version: str | None) -> tuple[int, ...]:
    """A ``gitVersion`` for comparison: pre-releases below their release, no version below any (semver 11)."""
    match = _RELEASE.fullmatch(version or "")
    if match is None:
        return ()
    rest = match["rest"]
    return (int(match[1]), int(match[2]), int(match[3] or 0), 0 if rest.startswith("-") else 1)


def digest_of(offers: Offers) -> str:
    lines = (f"{key}={offers[key]}\n" for key in sorted(offers))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def union_of(servers: Iterable[BackendServer]) -> dict[GroupVersion, Hash | None]:
    """What the backend offers: of each group-version the document of the highest server that has it, of
    equals the highest hash. The order of the servers does not matter."""
    best: dict[GroupVersion, tuple[tuple[bool, tuple[int, ...], int, str], Hash | None]] = {}
    for server in servers:
        for key, hash in server.offers.items():
            # Not by the whole of what it offers: another document of it would move this one.
            rank = (*server.standing, hash or "")
            if key not in best or rank > best[key][0]:
                best[key] = rank, hash
    return {key: best[key][1] for key in sorted(best)}


def difference_text(servers: Collection[BackendServer]) -> str:
    """For people: how many servers there are, of which releases, and what not all of them have."""
    releases = Counter(server.version or "version unknown" for server in servers)
    counts = ", ".join(f"{count} × {version}" for version, count in sorted(releases.items()))
    parts = [f"{len(servers)} servers: {counts}"]
    failed = sum(server.failure is not None for server in servers)
    if failed:
        parts.append(f"{failed} of them {'fails' if failed == 1 else 'fail'}")
    # One that never answered says nothing about what the others have.
    seen = [server for server in servers if server.offers]
    having = Counter(key for server in seen for key in server.offers)
    for count in sorted({*having.values()} - {len(seen)}):
        keys = sorted(key for key, number in having.items() if number == count)
        parts.append(f"{_listed(keys)} on {'one' if count == 1 else count} of them")
    changed = sorted(
        key
        for key, count in having.items()
        if count == len(seen) and len({server.offers[key] for server in seen}) > 1
    )
    if changed:
        parts.append(f"different documents: {_listed(changed)}")
    return "; ".join(parts)


def _listed(keys: list[GroupVersion]) -> str:
    more = len(keys) - NAMED
    return ", ".join(keys[:NAMED]) + (f" and {more} more" if more > 0 else "")

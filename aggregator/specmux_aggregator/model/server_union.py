"""The servers of one backend: what each offers, and their union. Pure.

A control plane has several apiservers, an extension apiserver several replicas; during an upgrade they run
two versions. Kubernetes merges their discovery (KEP-4020) but not their OpenAPI documents. Here the newest
release owns a group-version, and what any server has is kept until the last one has lost it.
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
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping
from specmux_converters.releases import release_in

Hash = NewType("Hash", str)

Offers = Mapping[GroupVersion, Hash | None]

NAMED: Final = 3
"""Group-versions named in a message about differences."""

_RELEASE: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BackendServer:
    """A server as last seen. ``name``: its address, or a digest of what it offers where one address hides
    several. ``version``: its ``gitVersion``, if known. ``failure``: of its last attempt. ``is_steady``: no
    failure for a while."""

    name: str
    offers: Offers
    version: str | None = None
    failure: Failure | None = None
    is_steady: bool = True

    @property
    def standing(self) -> tuple[bool, tuple[int, ...], int]:
        """Rank for owning a group-version, highest first: reachable, then the release, then the number of
        offers."""
        return self.is_steady, release_of(self.version), len(self.offers)

    @property
    def rank(self) -> tuple[bool, tuple[int, ...], int, str, str]:
        """Total order for lists; ties are broken by content."""
        return *self.standing, digest_of(self.offers), self.name


@lru_cache(maxsize=32)
def git_version(page: bytes | None) -> str | None:
    """The ``gitVersion`` of the object at ``/version``; None if absent."""
    try:
        value = orjson.loads(page or b"null")
    except orjson.JSONDecodeError:
        return None
    version = mapping(value).get("gitVersion")
    return version if isinstance(version, str) else None


@lru_cache(maxsize=32)
def served_version(page: bytes | None) -> str | None:
    """The version whose rules the server at ``/version`` applies: "v1.37" where a newer binary emulates it
    (KEP-4330), else its ``gitVersion``."""
    version = git_version(page)
    value = mapping(orjson.loads(page)) if page and version is not None else {}
    match value.get("emulationMajor"), value.get("emulationMinor"):
        case str(major), str(minor) if major.isdecimal() and minor.isdecimal():
            emulated = f"v{major}.{minor}"
            return version if release_in(version) == emulated else emulated
    return version


def release_of(version: str | None) -> tuple[int, ...]:
    """A ``gitVersion`` for comparison: pre-releases below their release, no version below all (semver 11)."""
    match = _RELEASE.fullmatch(version or "")
    if match is None:
        return ()
    rest = match["rest"]
    return (int(match[1]), int(match[2]), int(match[3] or 0), 0 if rest.startswith("-") else 1)


def digest_of(offers: Offers) -> str:
    lines = (f"{key}={offers[key]}\n" for key in sorted(offers))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def union_of(servers: Iterable[BackendServer]) -> dict[GroupVersion, Hash | None]:
    """The union of offers: for each group-version the document of the highest-ranked server that has it,
    among equals the highest hash. Independent of the order of the servers."""
    best: dict[GroupVersion, tuple[tuple[bool, tuple[int, ...], int, str], Hash | None]] = {}
    for server in servers:
        for key, hash in server.offers.items():
            # Ranked without the digest of all offers: a change of another document must not move this one.
            rank = (*server.standing, hash or "")
            if key not in best or rank > best[key][0]:
                best[key] = rank, hash
    return {key: best[key][1] for key in sorted(best)}


def difference_text(servers: Collection[BackendServer]) -> str:
    """A text for people: how many servers, which releases, and what only some of them have."""
    releases = Counter(server.version or "version unknown" for server in servers)
    counts = ", ".join(f"{count} × {version}" for version, count in sorted(releases.items()))
    parts = [f"{counted(len(servers), 'server')}: {counts}"]
    failed = sum(server.failure is not None for server in servers)
    if failed:
        parts.append(f"{failed} of them {'fails' if failed == 1 else 'fail'}")
    # A server that never answered says nothing about the others.
    seen = [server for server in servers if server.offers or server.failure is None]
    having = Counter(key for server in seen for key in server.offers)
    for count in sorted({*having.values()} - {len(seen)}):
        keys = sorted(key for key, number in having.items() if number == count)
        parts.append(f"{list_first(keys, NAMED)} on {'one' if count == 1 else count} of them")
    changed = sorted(
        key
        for key, count in having.items()
        if count == len(seen) and len({server.offers[key] for server in seen}) > 1
    )
    if changed:
        parts.append(f"different documents: {list_first(changed, NAMED)}")
    return "; ".join(parts)

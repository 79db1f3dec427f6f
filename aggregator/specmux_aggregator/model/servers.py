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

from specmux_converters.group_versions import GroupVersion

Hash = NewType("Hash", str)

Offers = Mapping[GroupVersion, Hash | None]

NAMED: Final = 3
"""Group-versions that a line about differences names."""

_RELEASE: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BackendServer:
    """One server as it was last seen. ``name``: where it is asked, or a digest of what it offers where one
    address hides several. ``version``: its ``gitVersion``, where it is known."""

    name: str
    offers: Offers
    version: str | None = None

    @property
    def rank(self) -> tuple[tuple[int, ...], int, str]:
        """The highest has a group-version: the release, then how much it offers, then what it is."""
        return release_of(self.version), len(self.offers), digest_of(self.offers)


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
    """What the backend offers: of each group-version the document of the highest server that has it. The
    order of the servers does not matter."""
    offers: dict[GroupVersion, Hash | None] = {}
    for server in sorted(servers, key=lambda each: each.rank):
        offers |= server.offers
    return offers


def difference_text(servers: Collection[BackendServer]) -> str:
    """For people: how many servers there are, of which releases, and what not all of them have."""
    releases = Counter(server.version or "version unknown" for server in servers)
    told = ", ".join(f"{count} × {version}" for version, count in sorted(releases.items()))
    having = Counter(key for server in servers for key in server.offers)
    partial = sorted(key for key, count in having.items() if count < len(servers))
    changed = sorted(
        key
        for key, count in having.items()
        if count == len(servers) and len({server.offers[key] for server in servers}) > 1
    )
    parts = [f"{len(servers)} servers: {told}"]
    if partial:
        parts.append(f"not on all of them: {_listed(partial)}")
    if changed:
        parts.append(f"different documents: {_listed(changed)}")
    return "; ".join(parts)


def _listed(keys: list[GroupVersion]) -> str:
    more = len(keys) - NAMED
    return ", ".join(keys[:NAMED]) + (f" and {more} more" if more > 0 else "")

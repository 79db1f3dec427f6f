"""The settings of a client, in one value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path

from specmux_cache.http.caching import Tolerance
from specmux_cache.http.media_types import accepted_by_gates
from specmux_cache.store.limits import StoreLimits
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Settings of a client. Times are seconds; ValueError for a negative value, and for a timeout of 0."""

    directory: str | os.PathLike[str] | None = field(default_factory=lambda: default_directory(os.environ))
    """The cache directory, shared with other processes. None keeps everything in memory, for this client."""
    limits: StoreLimits = field(default_factory=StoreLimits)
    partition: str | None = None
    """Clients with the same name share entries, whatever their credentials. Default: a name derived from the
    credentials, so a new token starts with an empty cache."""
    offline: bool = False
    """Send no requests; use stored answers of any age."""
    root_ttl: float = 0.0
    """Lifetime of the stored discovery root, and of documents without a hash. 0: request them every time."""
    stale_while_revalidate: float = 0.0
    """Time after that in which they are used, marked stale, while a background request renews them."""
    stale_if_error: float = 86400.0
    """Time for which a stored answer, marked stale, replaces that of a failing server."""
    not_found_ttl: float = 2.0
    """Time for which a group-version missing in the root is not looked for again."""
    allow_cbor: bool = False
    """KEP-4222: CBOR is accepted."""
    prefer_cbor: bool = False
    """KEP-4222: CBOR is preferred where allow_cbor accepts it."""
    refusal_ttl: float = 600.0
    """Time for which a media type that a server refused for a document is not requested again."""
    connect_timeout: float = 5.0
    timeout: float = 60.0
    """Limit for a complete answer; above 0, as ``connect_timeout``."""
    flight_timeout: float = 10.0
    """Longest wait for another process that fetches the same document; after that, fetch it as well."""
    decoded_max: int = 16
    """Decoded documents kept in memory."""

    def __post_init__(self) -> None:
        """Raises ValueError for a time below 0, and for a timeout of a request that is 0."""
        if not (self.timeout and self.connect_timeout):
            raise ValueError("CacheOptions.timeout and connect_timeout cannot be 0")
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, float | int) and value < 0:
                raise ValueError(f"CacheOptions.{each.name} is {value}; 0 is the least")

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(self.root_ttl, self.stale_while_revalidate, self.stale_if_error)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Media types of documents, best first, by the two gates."""
        return accepted_by_gates(allow_cbor=self.allow_cbor, prefer_cbor=self.prefer_cbor)


def default_directory(environment: Mapping[str, str]) -> Path:
    """``$XDG_CACHE_HOME/specmux``, else ``~/.cache/specmux``. XDG has a relative one ignored."""
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    home = environment.get("HOME")
    base = named if named.is_absolute() else Path(home or Path.home(), ".cache")
    return base / "specmux"

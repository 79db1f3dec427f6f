"""How a client behaves, in one value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path

from specmux_cache.http.freshness import Tolerance
from specmux_cache.http.media_types import gated
from specmux_cache.store.limits import StoreLimits
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Times are seconds."""

    directory: str | os.PathLike[str] | None = field(default_factory=lambda: default_directory(os.environ))
    """None keeps everything in memory, for this client alone."""
    limits: StoreLimits = field(default_factory=StoreLimits)
    partition: str | None = None
    """Clients with the same name share entries whatever they authenticate as. Default: a name derived from
    the credentials, so that a new token begins with an empty cache."""
    offline: bool = False
    """Ask no server; use what is stored, however old."""
    root_ttl: float = 0.0
    """How long the discovery root is trusted without being asked for."""
    stale_while_revalidate: float = 0.0
    """How long after that it is used, marked stale, while it is asked for in the background."""
    stale_if_error: float = 86400.0
    """How long a stored answer may stand in, marked stale, for a server that fails."""
    not_found_ttl: float = 2.0
    """How long a group-version that was not in the root is not looked for again."""
    allow_cbor: bool = False
    """KEP-4222: CBOR is accepted."""
    prefer_cbor: bool = False
    """KEP-4222: CBOR is preferred where allow_cbor accepts it."""
    refusal_ttl: float = 600.0
    """How long a media type that a server refused for a document is not asked for there."""
    connect_timeout: float = 5.0
    timeout: float = 60.0
    """For a whole answer. Neither can be 0."""
    flight_timeout: float = 10.0
    """How long to wait for another process that fetches the same; then it is fetched twice."""
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
        return gated(allow_cbor=self.allow_cbor, prefer_cbor=self.prefer_cbor)


def default_directory(environment: Mapping[str, str]) -> Path:
    """``$XDG_CACHE_HOME/specmux``, else ``~/.cache/specmux``. XDG has a relative one ignored."""
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    home = environment.get("HOME")
    base = named if named.is_absolute() else Path(home or Path.home(), ".cache")
    return base / "specmux"

"""How the configuration was last read. With an error, the one before is in force."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ConfigState:
    """Changed by whoever reads the configuration, read by whoever reports it; on one event loop."""

    error: str | None = None

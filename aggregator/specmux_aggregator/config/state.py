"""The result of reading the configuration last. After an error, the previous configuration is in force."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ConfigState:
    """Written by the reader of the configuration and read by reports; on one event loop."""

    error: str | None = None

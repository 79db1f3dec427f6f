"""How unions are checked, where that is asked for."""

from __future__ import annotations

from enum import StrEnum


class UnionAlgorithm(StrEnum):
    OFF = "off"
    SEED = "seed"
    """As the KEP has them since 2022."""
    LEGACY = "legacy"
    """As servers had them from 2019 to 2023."""

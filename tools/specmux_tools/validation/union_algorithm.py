"""The algorithm for unions, if they are checked."""

from __future__ import annotations

from enum import StrEnum


class UnionAlgorithm(StrEnum):
    OFF = "off"
    SEED = "seed"
    """As in the KEP since 2022."""
    LEGACY = "legacy"
    """As in servers from 2019 to 2023."""

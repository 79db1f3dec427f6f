"""The algorithm for unions, if they are checked."""

from __future__ import annotations

from enum import StrEnum


class UnionAlgorithm(StrEnum):
    OFF = "off"
    SEED = "seed"
    """The KEP's algorithm since 2022."""
    LEGACY = "legacy"
    """The algorithm of servers from 2019 to 2023."""

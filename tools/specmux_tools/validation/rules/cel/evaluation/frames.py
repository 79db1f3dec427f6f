"""The state of one evaluation: variables by slot, and what it has cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from specmux_tools.validation.rules.cel.values.values import CostExceeded


class Frame:
    __slots__ = ("cost", "limit", "values")

    def __init__(self, slots: int, limit: int) -> None:
        self.values: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit

    def pay(self, cost: int) -> None:
        """Raises CostExceeded."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Run: TypeAlias = Callable[[Frame], Any]
"""A part of an expression, compiled. Raises CelError, CostExceeded."""

"""A sample of what is tried where every test runs: a share of random examples, the ends of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

_WHOLE: Final = 100
_SHARE: Final = 40


def is_whole(config: pytest.Config) -> bool:
    return "not long" not in config.option.markexpr


def load_profile(*, is_whole: bool) -> None:
    """Before test modules are imported."""
    # How long an example takes says more about the machine than about the code.
    settings.register_profile(
        "any machine",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=_WHOLE if is_whole else _SHARE,
    )
    settings.load_profile("any machine")


def examples(count: int) -> settings:
    return settings(max_examples=share(count))


def share(count: int) -> int:
    """All ``count`` where every test runs."""
    return count * settings.default.max_examples // _WHOLE


def ends(values: Sequence[Any]) -> list[Any]:
    """Cases of a test. Those between the first and the last are long."""
    between = [pytest.param(value, marks=pytest.mark.long) for value in values[1:-1]]
    return [values[0], *between, *values[1:][-1:]]

"""Counts that tests report: how many documents were compared, how many were equal, what was excepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

_PREFIX = "tally: "


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Adds to a count that the closing summary prints."""

    def add(label: str, count: int) -> None:
        record_property(_PREFIX + label, count)

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for label, count in report.user_properties:
            if label.startswith(_PREFIX):
                counts[label.removeprefix(_PREFIX)] += count
    for label, count in sorted(counts.items()):
        terminalreporter.write_line(f"{label}: {count}")

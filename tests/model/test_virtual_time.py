"""The virtual clock reaches every part of the service."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "aggregator"


def test_no_default_binds_the_real_clock() -> None:
    """A default is bound at import, before a test can give the ``time`` module another clock."""
    binding = re.compile(r"= time\.(?:monotonic|time|perf_counter)\b(?!\()")
    assert [path.name for path in SOURCES.rglob("*.py") if binding.search(path.read_text())] == []

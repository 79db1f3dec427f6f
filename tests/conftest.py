"""What every test shares: the count of tests that had no reference data to run on."""

from __future__ import annotations

from typing import Any

import pytest

import shared_data


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if shared_data.REASON in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped: {shared_data.REASON}")

from __future__ import annotations

import logging

import pytest

from specmux_aggregator.server import malformed_log as complaints
from specmux_aggregator.server.malformed_log import TOLD_MAX, AcceptComplaints


def test_a_flood_is_a_few_lines_and_a_count(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(complaints.time, "monotonic", lambda: now[0])
    told = AcceptComplaints()
    with caplog.at_level(logging.INFO):
        for _ in range(1000):
            told.log_malformed("10.0.0.1", "BadHttpMethod")
        now[0] += 1.5
        told.log_malformed("10.0.0.1", 505)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        *["malformed request from 10.0.0.1: BadHttpMethod"] * TOLD_MAX,
        f"{1000 - TOLD_MAX} more malformed requests were not logged",
        "malformed request from 10.0.0.1: 505",
    ]

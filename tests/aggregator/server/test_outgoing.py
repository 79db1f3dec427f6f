"""What is written to a client, and where it is counted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from specmux_aggregator.http.prepared_answer import TimeLines, prepare
from specmux_aggregator.server import outgoing
from specmux_aggregator.server.memo import Slot
from specmux_aggregator.server.outgoing import Outgoing
from specmux_aggregator.server.stats import BOUNDS, Cell


class KeepingTransport(asyncio.Transport):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (BOUNDS[0], 0), (BOUNDS[0] * 1.01, 1), (BOUNDS[-1], len(BOUNDS) - 1), (99.0, -1)],
)
def test_duration_falls_into_the_bucket_whose_bound_it_does_not_exceed(
    seconds: float, bucket: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "time", SimpleNamespace(monotonic=lambda: 0.0))
    shared: Any = SimpleNamespace(lines=TimeLines())
    transport, cell = KeepingTransport(), Cell()
    assert Outgoing(transport, shared, is_encrypted=True).answer(
        Slot(prepare(200, [], b"all"), cell), started=-seconds
    )
    expected = [0] * (len(BOUNDS) + 1)
    expected[bucket] = 1
    assert cell.buckets == expected
    assert cell.seconds == seconds
    assert transport.written.endswith(b"\r\n\r\nall")

"""What the server counts."""

from __future__ import annotations

import pytest

from specmux_aggregator.http.prepared import prepare
from specmux_aggregator.server.stats import BOUNDS, Cell, RequestStats


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (BOUNDS[0], 0), (BOUNDS[0] * 1.01, 1), (BOUNDS[-1], len(BOUNDS) - 1), (99.0, -1)],
)
def test_duration_falls_into_the_bucket_whose_bound_it_does_not_exceed(seconds: float, bucket: int) -> None:
    cell = Cell()
    cell.add(seconds)
    expected = [0] * (len(BOUNDS) + 1)
    expected[bucket] = 1
    assert cell.buckets == expected
    assert cell.seconds == seconds


def test_bounds_rise_and_tell_apart_what_is_below_a_millisecond() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert sum(bound < 0.001 for bound in BOUNDS) >= 5


def test_answers_are_counted_by_route_format_and_code() -> None:
    stats = RequestStats()
    for status in (200, 200, 404):
        stats.observe(prepare(status, [], route="openapi_root", format="json"), 0.5)
    first, second = stats.snapshot().durations
    assert (first.route, first.format, first.code, sum(first.buckets), first.seconds) == (
        "openapi_root",
        "json",
        200,
        2,
        1.0,
    )
    assert (second.code, sum(second.buckets)) == (404, 1)


def test_snapshot_does_not_change_afterwards() -> None:
    stats = RequestStats()
    answer = prepare(200, [])
    stats.observe(answer, 0.5)
    before = stats.snapshot()
    stats.observe(answer, 0.5)
    stats.malformed += 1
    assert sum(before.durations[0].buckets) == 1
    assert before.malformed == 0

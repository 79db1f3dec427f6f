"""What the server counts."""

from __future__ import annotations

from running.serving import FakeService
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.stats import BOUNDS, RequestStats


def observe(stats: RequestStats, answer: PreparedAnswer, seconds: float) -> None:
    """As whoever writes answers does."""
    cell = Answers(FakeService(), stats).slot(answer).cell
    cell.seconds += seconds
    cell.buckets[0] += 1


def test_bounds_rise_and_tell_apart_what_is_below_a_millisecond() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert sum(bound < 0.001 for bound in BOUNDS) >= 5


def test_answers_are_counted_by_route_format_and_code() -> None:
    stats = RequestStats()
    for status in (200, 200, 404):
        observe(stats, prepare(status, [], route="openapi_root", format="json"), 0.5)
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
    observe(stats, answer, 0.5)
    before = stats.snapshot()
    observe(stats, answer, 0.5)
    stats.malformed += 1
    assert sum(before.durations[0].buckets) == 1
    assert before.malformed == 0

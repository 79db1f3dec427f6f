"""Memory for a while, and bounded."""

from __future__ import annotations

from specmux_aggregator.auth.kubernetes import ReviewCache


def test_value_is_there_until_its_time_has_come() -> None:
    remembered: ReviewCache[str, int] = ReviewCache(10)
    remembered.put("a", 1, until=5.0)
    assert remembered.get("a", 4.9) == 1
    assert remembered.get("a", 5.0) is None
    assert len(remembered) == 0
    assert remembered.get("b", 0.0) is None


def test_what_was_unused_for_longest_goes_first() -> None:
    remembered: ReviewCache[int, int] = ReviewCache(3)
    for number in range(3):
        remembered.put(number, number, until=9.0)
    assert remembered.get(0, 1.0) == 0
    remembered.put(3, 3, until=9.0)
    assert [remembered.get(number, 1.0) for number in range(4)] == [0, None, 2, 3]
    assert len(remembered) == 3


def test_use_does_not_prolong_and_a_new_value_does() -> None:
    remembered: ReviewCache[str, int] = ReviewCache(3)
    remembered.put("a", 1, until=5.0)
    assert remembered.get("a", 4.0) == 1
    assert remembered.get("a", 5.0) is None
    remembered.put("a", 2, until=7.0)
    remembered.put("a", 3, until=6.0)
    assert remembered.get("a", 5.5) == 3
    assert remembered.get("a", 6.0) is None

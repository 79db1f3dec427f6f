"""Followers while definitions change, in the short form."""

from __future__ import annotations

import pytest

from stress.stress_followers import stress


@pytest.mark.long
def test_followers_are_told_the_same_once() -> None:
    run = stress(6.0, followers=24)
    assert not run.wrong, "\n".join(run.wrong)
    assert len(run.table) >= 3

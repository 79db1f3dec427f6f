"""Readers that come back to any of three replicas, in the short form."""

from __future__ import annotations

import pytest

from stress.stress_resumption import stress


@pytest.mark.long
@pytest.mark.timeout(240)
def test_readers_that_come_back_lose_nothing() -> None:
    run = stress(60, readers=6)
    assert not run.wrong, "\n".join(run.wrong)
    assert len(run.table) == 3

"""Replicas behind proxies, in the short form."""

from __future__ import annotations

import pytest

from stress.replicas import nginx
from stress.stress_replicas import stress


@pytest.mark.long
@pytest.mark.skipif(nginx() is None, reason="nginx is not installed")
def test_replicas_agree_and_are_replaced_without_an_error() -> None:
    run = stress(3.0, 200)
    assert not run.wrong, "\n".join(run.wrong)
    assert len(run.table) >= 6

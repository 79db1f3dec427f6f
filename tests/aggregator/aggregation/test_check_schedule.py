"""What a check of a backend leaves behind, and when the next one is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from running.service import directory
from specmux_aggregator.aggregation.check_schedule import after, scan_rest
from specmux_aggregator.backend_sources.outcome import BackendOffers, UnchangedOffers
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Cause, build_failure
from specmux_aggregator.model.observation import Observation

UNSEEN = Observation(backend=directory("files", Path("/files")))


def test_check_without_a_worker_is_no_look_at_the_backend() -> None:
    lacking = after(UNSEEN, build_failure(NoWorker("no processes")), now=1.0)
    assert not lacking.attempted
    assert lacking.failure is not None
    assert lacking.failure.cause is Cause.NO_WORKER
    assert after(lacking, build_failure(NoWorker("no memory")), now=2.0) is lacking
    assert after(lacking, build_failure(WorkerFailed("it died")), now=2.0).attempted
    seen = after(lacking, UnchangedOffers(), now=2.0)
    assert seen.attempted
    assert after(seen, build_failure(NoWorker("no processes")), now=3.0).attempted


def test_large_directory_is_looked_at_less_often_and_an_edit_seen_within_ten_seconds() -> None:
    assert scan_rest(UnchangedOffers(), 0.001) < 0.1
    assert scan_rest(UnchangedOffers(), 0.1) == pytest.approx(6.0)
    assert scan_rest(UnchangedOffers(), 5.0) == 10.0
    assert scan_rest(BackendOffers(BackendKind.DIRECTORY, {}), 5.0) == 0.0, "a build is no look"

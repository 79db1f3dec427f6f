"""What a check of a backend that never took place leaves behind."""

from __future__ import annotations

from pathlib import Path

from running.service import directory
from specmux_aggregator.aggregation.check_schedule import after
from specmux_aggregator.backend_sources.outcome import UnchangedOffers
from specmux_aggregator.errors import NoWorker, WorkerFailed
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

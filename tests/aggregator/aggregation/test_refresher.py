from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from deadline import DEADLINE
from specmux_aggregator.aggregation.check_schedule import after, delay
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_cache.access.server_access import Credentials
from specmux_converters.group_versions import GroupVersion

APPS = GroupVersion("apis/apps/v1")
BACKEND = Backend(name=BackendName("a"), url="http://x")
FIRST = Observation(backend=BACKEND)
DOWN = Failure(Cause.REFUSED, "no")
FAST = PollingSettings(interval=0.01, backoff_min=0.01, backoff_max=0.02, revalidate_interval=0.05)


def seen(hash: str = "A") -> BackendOffers:
    return BackendOffers(BackendKind.V3, {APPS: Offer(hash=Hash(hash), provenance=Provenance.NATIVE)})


class FakeOrigin:
    """Answers what the test says, and counts."""

    def __init__(self, *outcomes: Outcome | Exception) -> None:
        self.outcomes = list(outcomes)
        self.observed = 0
        self.is_closed = False
        self.gate: asyncio.Event | None = None

    async def observe(self, last: Observation) -> Outcome:
        self.observed += 1
        if self.gate is not None:
            await self.gate.wait()
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        raise AssertionError("not asked in these tests")

    async def close(self) -> None:
        self.is_closed = True


def test_failure_keeps_the_last_good_offers() -> None:
    up = after(FIRST, seen(), now=1)
    down = after(up, DOWN, now=2)
    assert down.offers == up.offers
    assert down.failure == DOWN
    assert down.changed_at == 2


def test_resources_that_become_known_of_the_same_documents_change_nothing() -> None:
    """As after a restart: offers are recalled from disk, resources are not."""
    up = after(FIRST, seen(), now=1)
    told = after(up, replace(seen(), resources={APPS: ()}), now=2)
    assert (told.resources, told.changed_at) == ({APPS: ()}, 1)
    assert after(told, replace(seen("B"), resources={}), now=3).changed_at == 3


def test_check_that_changes_nothing_is_the_same_observation() -> None:
    up = after(FIRST, seen(), now=1)
    assert after(up, UnchangedOffers(), now=2) is up
    assert after(up, seen(), now=2) is up
    down = after(up, DOWN, now=2)
    assert after(down, Failure(Cause.REFUSED, "other words"), now=3) is down
    assert after(down, Failure(Cause.TIMEOUT, ""), now=3) is not down


@pytest.mark.parametrize("outcome", [UnchangedOffers(), seen()])
def test_backend_that_answers_again_is_up(outcome: Outcome) -> None:
    down = after(after(FIRST, seen(), now=1), DOWN, now=2)
    assert after(down, outcome, now=3).failure is None


BATCH = GroupVersion("apis/batch/v1")
BOTH = BackendOffers(
    BackendKind.V3, {**seen().offers, BATCH: Offer(hash=Hash("B"), provenance=Provenance.NATIVE)}
)
FULL = after(FIRST, BOTH, now=0, monotonic=0, grace=15)


def step(last: Observation, outcome: Outcome, at: float, grace: float = 15) -> Observation:
    return after(last, outcome, now=at, monotonic=at, grace=grace)


def test_group_version_that_is_missing_from_a_root_is_gone_when_that_has_lasted() -> None:
    less = step(FULL, seen(), 10)
    assert (less.offers, dict(less.missing)) == (FULL.offers, {BATCH: 10})
    assert step(less, seen(), 20) is less
    assert step(less, UnchangedOffers(), 20) is less
    for outcome in (seen(), UnchangedOffers()):
        gone = step(less, outcome, 25)
        assert (set(gone.offers), dict(gone.missing)) == ({APPS}, {})


def test_group_version_that_is_back_in_time_was_never_away() -> None:
    back = step(step(FULL, seen("A2"), 10), BOTH, 24)
    assert (back.offers, dict(back.missing)) == (FULL.offers, {})
    assert set(step(back, seen(), 26).offers) == {APPS, BATCH}


@pytest.mark.parametrize("outcome", [seen(), UnchangedOffers()])
def test_what_is_missing_counts_anew_after_a_failure(outcome: Outcome) -> None:
    """A server that starts, dies and starts: each start publishes less for a while. If nothing changed since
    the root that lacked it, it was kept for ever."""
    again = step(step(step(FULL, seen(), 10), DOWN, 20), outcome, 40)
    assert (set(again.offers), dict(again.missing)) == ({APPS, BATCH}, {BATCH: 40})
    assert set(step(again, UnchangedOffers(), 54).offers) == {APPS, BATCH}
    gone = step(again, UnchangedOffers(), 55)
    assert (set(gone.offers), dict(gone.missing)) == ({APPS}, {})


def test_what_the_cluster_says_exists_is_never_gone_and_what_it_took_back_is_at_once() -> None:
    known = replace(FULL, backend=replace(BACKEND, found=ClusterFacts(existing=frozenset({BATCH}))))
    assert set(step(step(known, seen(), 10), seen(), 1000).offers) == {APPS, BATCH}
    withdrawn = replace(FULL, backend=replace(BACKEND, found=ClusterFacts(excluded=frozenset({BATCH}))))
    assert set(step(withdrawn, seen(), 10).offers) == {APPS}


def test_directory_and_a_grace_of_nothing_take_away_at_once() -> None:
    assert set(step(FULL, seen(), 10, grace=0).offers) == {APPS}
    files = replace(seen(), dialect=BackendKind.DIRECTORY)
    assert set(step(FULL, files, 10).offers) == {APPS}


@pytest.mark.parametrize(
    ("outcome", "failures", "random_unit", "expected"),
    [
        (UnchangedOffers(), 0, 0.5, 10),
        (UnchangedOffers(), 0, 1.0, 11),
        (UnchangedOffers(), 0, 0.0, 9),
        (DOWN, 1, 0.5, 1),
        (DOWN, 4, 0.5, 8),
        (DOWN, 60, 0.5, 60),
        (Failure(Cause.THROTTLED, "", 30.0), 1, 0.5, 30),
        (Failure(Cause.THROTTLED, "", 9999.0), 1, 0.5, 60),
    ],
)
def test_delay_grows_with_failures_up_to_a_bound(
    outcome: Outcome, failures: int, random_unit: float, expected: float
) -> None:
    assert delay(PollingSettings(), outcome, failures=failures, random_unit=random_unit) == pytest.approx(
        expected
    )


async def running(
    origin: FakeOrigin,
    published: list[Observation],
    polling: PollingSettings = FAST,
    clock: Callable[[], float] = time.monotonic,
) -> Refresher:
    async def publish(observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        published.append(observation)

    return Refresher(origin, FIRST, polling=polling, publish=publish, observed=lambda *_: None, clock=clock)


async def test_every_change_is_published_and_nothing_else() -> None:
    origin, published = FakeOrigin(seen("A"), UnchangedOffers(), DOWN, DOWN, seen("B"), UnchangedOffers()), []
    refresher = await running(origin, published)
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while origin.observed < 7:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(item.failure, [offer.hash for offer in item.offers.values()]) for item in published] == [
        (None, ["A"]),
        (DOWN, ["A"]),
        (None, ["B"]),
    ]
    assert origin.is_closed


async def test_a_check_vouches_for_nothing_before_clients_can_see_what_it_found() -> None:
    published, seen_by_clients = asyncio.Event(), asyncio.Event()

    async def publish(observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        published.set()
        await seen_by_clients.wait()

    refresher = Refresher(
        FakeOrigin(seen("B"), UnchangedOffers()),
        step(FIRST, seen("A"), 0),
        polling=replace(FAST, interval=60, revalidate_interval=60),
        publish=publish,
        observed=lambda *_: None,
    )
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        await published.wait()
        assert refresher.vouched_until is None
        asking = asyncio.create_task(refresher.revalidate(timeout=600))
        await asyncio.sleep(0)
        assert not asking.done()
        seen_by_clients.set()
        await asking
        assert refresher.vouched_until is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (
            OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
            Failure(Cause.UNREADABLE, "Too many open files"),
        ),
        (MemoryError(), Failure(Cause.INTERNAL, "out of memory")),
    ],
)
def test_system_that_has_nothing_left_is_no_bug(
    error: Exception, failure: Failure, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> Observation:
        origin = FakeOrigin(error, seen())
        failed: list[Observation] = []

        async def publish(observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
            failed.append(observation)

        refresher = Refresher(
            origin, FIRST, polling=FAST, publish=publish, observed=lambda observation, outcome, seconds: None
        )
        task = asyncio.create_task(refresher.run())
        async with asyncio.timeout(DEADLINE):
            while len(failed) < 2:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert failed[1].failure is None
        return failed[0]

    assert asyncio.run(scenario()).failure == failure
    assert "Traceback" not in caplog.text


async def test_bug_in_one_backend_is_contained(caplog: pytest.LogCaptureFixture) -> None:
    origin, published = FakeOrigin(ValueError("bug"), seen()), []
    refresher = await running(origin, published)
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while len(published) < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert published[0].failure is not None
    assert published[0].failure.cause is Cause.INTERNAL
    assert published[1].failure is None


async def test_callers_of_revalidate_share_one_check_which_then_vouches() -> None:
    origin, published = FakeOrigin(seen()), []
    now = 100.0
    polling = PollingSettings(interval=60, revalidate_interval=0.2)
    refresher = await running(origin, published, polling, clock=lambda: now)
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while not published:
            await asyncio.sleep(0.01)
        assert refresher.vouched_until is not None
        now += 0.25
        assert refresher.vouched_until is None
        await asyncio.gather(*(refresher.revalidate(timeout=600) for _ in range(50)))
        assert origin.observed == 2
        await refresher.revalidate(timeout=5)
        assert origin.observed == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_revalidate_waits_no_longer_than_it_may() -> None:
    origin, published = FakeOrigin(seen()), []
    refresher = await running(origin, published, PollingSettings(interval=60, revalidate_interval=0.01))
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while not published:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        origin.gate = asyncio.Event()
        await refresher.revalidate(timeout=0.05)
        assert not refresher._waiting, "who gave up is kept for as long as the check hangs"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_failing_backend_is_not_asked_by_clients() -> None:
    origin, published = FakeOrigin(DOWN), []
    polling = PollingSettings(interval=60, backoff_min=60, revalidate_interval=0.01)
    refresher = await running(origin, published, polling)
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while not published:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        await refresher.revalidate(timeout=5)
        await refresher.revalidate(timeout=5, newer_than=0)
    assert origin.observed == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_log_says_what_came_and_went(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    other = GroupVersion("apis/other/v1")
    offer = Offer(hash=Hash("A"), provenance=Provenance.FILE)
    steps = ({APPS: offer}, {APPS: replace(offer, hash=Hash("B")), other: offer}, {other: offer})
    origin = FakeOrigin(*(BackendOffers(BackendKind.DIRECTORY, each) for each in steps))
    published: list[Observation] = []
    refresher = await running(origin, published, FAST)
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(10):
        while len(published) < len(steps):
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    told = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert told == [
        "up, speaks directory, OpenAPI specs of 1 group-version",
        "OpenAPI specs: 1 added, 1 changed; 2 group-versions now",
        "OpenAPI specs: 1 removed; 1 group-version now",
    ]


async def test_failure_is_logged_once_for_as_long_as_its_cause_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    silent = Failure(Cause.TIMEOUT, "silent")
    origin = FakeOrigin(DOWN, DOWN, silent, silent, seen())
    refresher = await running(origin, [], FAST)
    await run_until(refresher, lambda: origin.observed > 5)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text.split(": ")[1] for text in warned] == [Cause.REFUSED, Cause.TIMEOUT]


async def test_refused_credentials_are_tried_again_once_their_file_is_another(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    origin = FakeOrigin(Failure(Cause.CREDENTIALS, "403", status=403))
    refresher = await running(origin, [], replace(FAST, backoff_min=3600.0, backoff_max=3600.0))
    refresher.stand(replace(BACKEND, credentials=Credentials(token_file=token)))
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.5
    await run_until(refresher, lambda: loop.time() > until)
    assert origin.observed == 1, "asked again, with what was refused"

    def is_asked() -> bool:
        token.write_text(token.read_text() + "new")
        return origin.observed > 2

    await run_until(refresher, is_asked)


async def run_until(refresher: Refresher, claim: Callable[[], bool]) -> None:
    task = asyncio.create_task(refresher.run())
    async with asyncio.timeout(DEADLINE):
        while not claim():
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

"""A watch that is refused, forbidden or answered with nonsense."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from aggregator.kubernetes.followed import QUICK, following, named, put, run
from deadline import DEADLINE
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from specmux_aggregator.kubernetes.watch import WatchPhase
from specmux_aggregator.model.failure import Cause
from specmux_cache.access.server_access import Credentials


def test_what_is_known_stays_while_the_apiserver_is_away() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            await cluster.stop()
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
            state = followed.watch.state
            assert state.failure is not None
            assert state.failure.cause is Cause.REFUSED
            assert state.objects == 1
            put(cluster, "b")
            await cluster.start()
            await followed.until_names("a", "b")
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
            assert followed.lists() == 1

    run(scenario)


@pytest.mark.parametrize(
    ("refusals", "phase"), [("forbidden", WatchPhase.FORBIDDEN), ("absent", WatchPhase.ABSENT)]
)
def test_refused_resource_is_said_once_and_asked_for_again(
    refusals: str, phase: WatchPhase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(cluster: FakeCluster) -> None:
        getattr(cluster, refusals).add(CRDS)
        async with following(cluster) as followed:
            await followed.until(lambda: followed.watch.state.phase is phase)
            await followed.until(lambda: followed.lists() == 4)
            assert followed.said == []
            assert len([entry for entry in caplog.records if entry.levelno == logging.WARNING]) == 1
            getattr(cluster, refusals).clear()
            put(cluster, "a")
            await followed.until_names("a")
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
            assert "up again" in caplog.text

    run(scenario)


def test_refused_resource_is_asked_for_more_and_more_seldom_up_to_each_minute() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.forbidden.add(CRDS)
        timing = replace(QUICK, backoff_min=0.1, ask_again=0.5)
        began = time.monotonic()
        async with following(cluster, timing=timing) as followed:
            await followed.until(lambda: followed.lists() >= 10)
            # After 0.1, 0.2, 0.4, 0.5, 0.5 ... seconds, each shortened at random by up to a half.
            assert time.monotonic() - began > 1.8

    run(scenario)


def test_resource_that_may_only_be_listed_is_listed_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.forbidden.add(CRDS)
        cluster.forbidden_verbs = {"watch"}
        put(cluster, "a")
        async with following(cluster) as followed:
            await followed.until_names("a")
            put(cluster, "b")
            await followed.until_names("a", "b")
            await followed.until(lambda: followed.lists() == 4)
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FORBIDDEN)
        assert len(caplog.records) == 1

    run(scenario)


@pytest.mark.parametrize("refusals", ["forbidden", "absent"])
def test_refusal_of_what_was_shown_is_a_failure_until_it_has_lasted(refusals: str) -> None:
    """As an apiserver starts: 403 to everybody until its roles are loaded."""

    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster, timing=replace(QUICK, refused_for=DEADLINE)) as followed:
            await cluster.until_watched(CRDS)
            getattr(cluster, refusals).add(CRDS)
            cluster.cut_watches()
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
            await followed.until(lambda: followed.lists() >= 4)  # it is asked again soon
            assert followed.watch.state.phase is WatchPhase.FAILING
            getattr(cluster, refusals).clear()
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
            assert followed.names == ["a"]

    run(scenario)


def test_right_that_is_taken_away_for_good_leaves_what_is_known() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            cluster.forbidden.add(CRDS)
            cluster.cut_watches()
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FORBIDDEN)
            assert followed.names == ["a"]
            assert followed.watch.state.objects == 1

    run(scenario)


def test_first_refusal_does_not_count_of_what_an_earlier_run_was_shown() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.forbidden.add(CRDS)
        async with following(cluster, timing=replace(QUICK, refused_for=60.0)) as followed:
            followed.watch.expect()
            await followed.until(lambda: followed.lists() >= 3)
            assert followed.watch.state.phase is WatchPhase.FAILING

    run(scenario)


@pytest.mark.parametrize("answers", [[[]], [["b"]], [["b"], ["a"], ["b"]]])
def test_list_that_lacks_something_once_takes_nothing_away(answers: list[list[str]]) -> None:
    """Lists of somebody who knows less for a moment; no two of them in a row lack the same."""

    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a", "b")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            left = list(answers)

            async def partial(request: web.Request) -> web.Response | None:
                if "watch" in request.query or not left:
                    return None
                held = [item for name, item in cluster.objects(CRDS).items() if name in left[0]]
                left.pop(0)
                return web.json_response({"metadata": {"resourceVersion": "1"}, "items": held})

            cluster.answers[CRDS] = partial
            await cluster.send_raw(CRDS, b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n')
            await followed.until(lambda: not left)
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
            assert all(sorted(objects) == ["a", "b"] for objects in followed.said), followed.said
            cluster.delete(CRDS, "a")
            await followed.until_names("b")

    run(scenario)


def test_token_that_rotates_is_read_again(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("one")

    async def scenario(cluster: FakeCluster) -> None:
        cluster.tokens = {"one"}
        put(cluster, "a")
        async with following(cluster, credentials=Credentials(token_file=token_file)) as followed:
            await cluster.until_watched(CRDS)
            cluster.tokens = {"two"}
            cluster.cut_watches()

            def is_told() -> bool:
                failure = followed.watch.state.failure
                return failure is not None and (failure.cause, failure.status) == (Cause.CREDENTIALS, 401)

            await followed.until(is_told)
            put(cluster, "b")
            token_file.write_text("two")
            await followed.until_names("a", "b")
            assert {entry.headers.get("Authorization") for entry in cluster.requests} == {
                "Bearer one",
                "Bearer two",
            }

    run(scenario)


def test_two_resources_share_a_client() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with following(cluster) as one, following(cluster, API_SERVICES) as two:
            await cluster.until_watched(CRDS)
            await cluster.until_watched(API_SERVICES)
            put(cluster, "a")
            put(cluster, "b", path=API_SERVICES)
            await one.until_names("a")
            await two.until_names("b")

    run(scenario)


def test_nothing_is_told_while_the_first_list_is_on_its_way() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async def hang(request: web.Request) -> None:
            await asyncio.sleep(60)

        cluster.answers[CRDS] = hang
        async with following(cluster) as followed:
            await followed.until(lambda: len(cluster.seen(CRDS)) == 1)
            assert followed.watch.state.phase is WatchPhase.PENDING
            assert followed.said == []

    run(scenario)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"metadata": {"resourceVersion": "1"}, "items": {}}',
        b'{"metadata": {"resourceVersion": "1"}, "items": [{}]}',
        b'{"metadata": {"resourceVersion": "1"}, "items": [3]}',
        b'{"metadata": {"resourceVersion": ""}, "items": []}',
    ],
)
def test_list_that_is_none_is_a_failure(body: bytes) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.pages[CRDS] = body
        async with following(cluster) as followed:
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
            failure = followed.watch.state.failure
            assert failure is not None
            assert failure.cause is Cause.BAD_BODY
            assert followed.said == []

    run(scenario)


def test_empty_list_may_have_null_for_items() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.pages[CRDS] = b'{"metadata": {"resourceVersion": "1"}, "items": null}'
        async with following(cluster) as followed:
            await followed.until(lambda: followed.said == [{}])

    run(scenario)


def test_bookmarks_of_the_fake_pass_over_no_event() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.bookmark_interval = 0.0
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            for number in range(100):
                put(cluster, f"n{number}")
                await asyncio.sleep(0)
            await followed.until(lambda: len(followed.names) == 100)

    run(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_the_end_is_the_same(seed: int) -> None:
    """Random changes and faults; at the end the watch knows exactly what the cluster has."""
    chance = random.Random(seed)

    async def scenario(cluster: FakeCluster) -> None:
        cluster.bookmark_interval = 0.03
        async with following(cluster) as followed:
            for _ in range(150):
                match chance.choice(["put"] * 6 + ["delete"] * 3 + ["cut", "compact", "garbage", "restart"]):
                    case "put":
                        cluster.put(CRDS, named(f"n{chance.randrange(12)}", value=chance.random()))
                    case "delete" if cluster.objects(CRDS):
                        cluster.delete(CRDS, chance.choice(sorted(cluster.objects(CRDS))))
                    case "cut":
                        cluster.cut_watches()
                    case "compact":
                        cluster.compact()
                    case "garbage":
                        await cluster.send_raw(CRDS, b"garbage\n")
                    case "restart" if chance.random() < 0.3:
                        await cluster.stop()
                        await cluster.start()
                await asyncio.sleep(chance.random() * 0.02)
            wanted = orjson.dumps(cluster.objects(CRDS), option=orjson.OPT_SORT_KEYS)
            await followed.until(
                lambda: (
                    bool(followed.said)
                    and orjson.dumps(followed.said[-1], option=orjson.OPT_SORT_KEYS) == wanted
                )
            )

    run(scenario)

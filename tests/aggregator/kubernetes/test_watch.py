"""A watch over real sockets: it loses nothing, whatever ends it, and asks no more often than it should."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import orjson
import pytest
from aiohttp import web

from aggregator.kubernetes.followed import POLLING, QUICK, following, named, put, run
from fakes.cluster import API_SERVICES, CRDS, FakeCluster, status
from specmux_aggregator.kubernetes import listing
from specmux_aggregator.kubernetes.watch import WatchPhase
from specmux_aggregator.model.failure import Cause


def test_first_list_is_told_even_of_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with following(cluster) as followed:
            await followed.until(lambda: followed.said == [{}])
            assert followed.watch.state.phase is WatchPhase.SYNCED
            assert followed.watch.state.version == "1000"

    run(scenario)


def test_items_of_a_list_get_the_kind_of_the_list() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        stored = cluster.put(CRDS, named("a", group="x"))
        async with following(cluster) as followed:
            await followed.until_names("a")
            assert followed.said == [{"a": stored}]
            assert stored["kind"] == "CustomResourceDefinition"
            assert stored["apiVersion"] == "apiextensions.k8s.io/v1"

    run(scenario)


def test_changes_are_told_as_they_come() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a", "b")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            put(cluster, "c")
            await followed.until_names("a", "b", "c")
            cluster.put(CRDS, named("a", changed=True))
            await followed.until(lambda: followed.said[-1]["a"]["spec"] == {"changed": True})
            cluster.delete(CRDS, "b")
            await followed.until_names("a", "c")
            assert (followed.lists(), followed.watches()) == (1, 1)
            assert followed.said[0].keys() == {"a", "b"}, "what was told before stays as it was"

    run(scenario)


def test_objects_of_namespaces_are_told_apart() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.kinds["/api/v1/pods"] = "Pod"
        for namespace in ("one", "two"):
            cluster.put("/api/v1/pods", {"metadata": {"name": "p", "namespace": namespace}})
        async with following(cluster, "/api/v1/pods") as followed:
            await followed.until_names("one/p", "two/p")

    run(scenario)


def test_long_list_comes_in_pages() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, *(f"n{number:04}" for number in range(1201)))
        async with following(cluster) as followed:
            await followed.until(lambda: bool(followed.said))
            assert len(followed.said[0]) == 1201
            assert followed.lists() == 4

    run(scenario)


@pytest.mark.parametrize("times", [1, 2])
def test_list_starts_over_when_its_token_grows_old_and_in_one_piece_at_last(times: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, *"abcdef")
        cluster.page_limit = 2
        left = times

        async def forget(request: web.Request) -> None:
            nonlocal left
            if "continue" in request.query and left:
                left -= 1
                cluster.compact()
                put(cluster, "gh"[times - left - 1])

        cluster.answers[CRDS] = forget
        async with following(cluster) as followed:
            await followed.until_names(*"abcdefgh"[: 6 + times])
            targets = [entry.target for entry in cluster.seen(CRDS)]
            assert "limit=" in targets[0]
            assert "continue=" in targets[1]
            assert "limit=" in targets[2]
            assert "continue=" not in targets[2]
            assert (CRDS in targets) is (times == 2)
            assert len(followed.said) == 1, "half a list is never told"

    run(scenario)


def test_page_above_the_bound_is_asked_for_in_halves_down_to_one() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        large = "x" * 3000
        for name in "abcdef":
            cluster.put(CRDS, named(name, text=large))
        async with following(cluster, max_bytes=5000) as followed:
            await followed.until_names(*"abcdef")
            queries = [dict(parse_qsl(entry.target.partition("?")[2])) for entry in cluster.seen(CRDS)]
            limits = [int(query["limit"]) for query in queries if "limit" in query]
            assert limits[:7] == [100, 50, 25, 12, 6, 3, 1]
            assert followed.watch.state.failure is None

    run(scenario)


def test_object_above_the_bound_is_a_failure_that_says_so() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, named("a", text="x" * 9000))
        async with following(cluster, max_bytes=5000) as followed:
            await followed.until(lambda: followed.watch.state.failure is not None)
            failure = followed.watch.state.failure
            assert failure is not None
            assert failure.cause is Cause.TOO_LARGE

    run(scenario)


def test_page_that_comes_too_late_makes_the_next_ones_smaller() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, *"abcdef")

        async def hang(request: web.Request) -> None:
            if int(request.query.get("limit", 0)) > 2:
                await asyncio.sleep(3600)

        cluster.answers[CRDS] = hang
        polling = replace(POLLING, idle_timeout=0.3, total_timeout=0.3)
        async with following(cluster, polling=polling) as followed:
            await followed.until_names(*"abcdef")

    run(scenario)


def test_pages_are_reduced_as_they_come_and_sized_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "FIRST", 4)
    monkeypatch.setattr(listing, "PAGE_BYTES", 40_000)
    size, kept, most = listing.PageSize(limit=4), [], 0

    class Client:
        """Pages of a list of 100 objects of a thousand bytes."""

        async def read(self, target: str, take: Callable[[Any, int], Any]) -> Any:
            nonlocal most
            query = dict(parse_qsl(target.partition("?")[2]))
            start, limit = int(query.get("continue", 0)), int(query["limit"])
            most = max(most, limit)
            items = [named(str(number), text="x" * 1000) for number in range(start, min(start + limit, 100))]
            token = str(start + limit) if start + limit < 100 else ""
            page = {"metadata": {"resourceVersion": "1", "continue": token}, "items": items}
            return take(page, len(orjson.dumps(page)))

    def keep(item: Any) -> Any:
        kept.append(item["metadata"]["name"])
        return {"metadata": item["metadata"]}

    async def read() -> Any:
        client: Any = Client()
        return await listing.read_list(client, "/x", selector={}, before=None, keep=keep, size=size)

    found = asyncio.run(read())
    assert len(found.objects) == len(kept) == 100
    assert all("spec" not in item for item in found.objects.values())
    assert most < 40_000 / 1000, "after the first page none is larger than the aim"


def test_watch_goes_on_where_a_dropped_one_stopped() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster) as followed:
            for name in "bcd":
                await cluster.until_watched(CRDS)
                cluster.cut_watches()  # in the middle of a line
                put(cluster, name)
                await followed.until(lambda name=name: name in followed.names)
            assert followed.names == ["a", "b", "c", "d"]
            assert followed.lists() == 1
            assert followed.watch.state.restarts == 3

    run(scenario)


def test_watch_goes_on_from_a_bookmark_when_all_before_it_is_compacted() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.bookmark_interval = 0.05
        put(cluster, "a")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            put(cluster, "x", path=API_SERVICES)  # moves the version, and not this resource
            cluster.compact()
            await followed.until(lambda: followed.watch.state.version == str(cluster.version))
            cluster.cut_watches()
            put(cluster, "b")
            await followed.until_names("a", "b")
            assert followed.lists() == 1

    run(scenario)


def test_compaction_without_bookmarks_means_a_new_list_that_reports_what_is_gone() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.bookmark_interval = None
        put(cluster, "a", "b")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            await asyncio.sleep(QUICK.standing)
            cluster.cut_watches()
            cluster.delete(CRDS, "a")
            put(cluster, "c")
            cluster.compact()
            await followed.until_names("b", "c")
            # What is missing in one list is gone when a second one agrees.
            assert [sorted(objects) for objects in followed.said] == [["a", "b"], ["a", "b", "c"], ["b", "c"]]
            assert followed.lists() == 3
            assert followed.said[0]["b"] is followed.said[2]["b"], "what has not changed is the same object"

    run(scenario)


def test_410_in_the_middle_of_a_watch_means_a_new_list() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            await cluster.send_raw(CRDS, b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n')
            await followed.until(lambda: followed.lists() == 2)
            await cluster.until_watched(CRDS)
            assert followed.watch.state.failure is None, "a version that grows old is no failure"
            assert len(followed.said) == 1, "nothing has changed"

    run(scenario)


@pytest.mark.parametrize("code", [400, 410])
def test_410_in_place_of_a_watch_means_a_new_list(code: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        refused = 0

        async def refuse(request: web.Request) -> web.Response | None:
            nonlocal refused
            if "watch" in request.query and not refused:
                refused += 1
                return status(code, "Expired")
            return None

        cluster.answers[CRDS] = refuse
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            assert followed.lists() == 2

    run(scenario)


def test_compaction_while_the_apiserver_is_away_costs_no_wait_once_it_is_back() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster, timing=replace(QUICK, backoff_max=1.0)) as followed:
            await followed.until_names("a")
            await cluster.until_watched(CRDS)
            await cluster.stop()
            await followed.until(lambda: followed.watch.state.failure is not None)
            await asyncio.sleep(1.0)
            put(cluster, "b")
            cluster.compact()
            await cluster.start()
            followed.watch._timing = replace(QUICK, backoff_min=600.0, backoff_max=600.0)
            await followed.until_names("a", "b")

    run(scenario)


def test_endless_410_is_not_asked_in_a_hurry() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async def refuse(request: web.Request) -> web.Response | None:
            return status(410, "Expired") if "watch" in request.query else None

        cluster.answers[CRDS] = refuse
        async with following(cluster) as followed:
            await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
            before, started = followed.watches(), time.monotonic()
            await asyncio.sleep(0.5)
            pauses = (time.monotonic() - started) / (QUICK.backoff_max / 2)
            assert followed.watches() - before <= pauses + 1

    run(scenario)


def test_other_error_events_are_waited_out_and_lose_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            await cluster.send_raw(CRDS, b'{"type": "ERROR", "object": {"kind": "Status", "code": 500}}\n')
            await followed.until(lambda: followed.watch.state.failure is not None)
            failure = followed.watch.state.failure
            assert failure is not None
            assert (failure.cause, failure.status) == (Cause.SERVER_ERROR, 500)
            put(cluster, "b")
            await followed.until_names("a", "b")
            assert followed.lists() == 1
            assert followed.watch.state.phase is WatchPhase.SYNCED

    run(scenario)


def test_version_that_lies_ahead_is_given_up_after_some_refusals() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, *(f"n{number}" for number in range(9)))
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            restored = FakeCluster()
            put(restored, "a")

            async def too_large(request: web.Request) -> web.Response | None:
                ahead = int(request.query.get("resourceVersion", "0")) > restored.version
                return status(504, "Timeout") if ahead else None

            restored.answers[CRDS] = too_large
            restored._port = cluster._port
            await cluster.stop()
            await restored.start()
            try:
                await followed.until_names("a")
            finally:
                await restored.stop()

    run(scenario)


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"[]\n",
        b"{}\n",
        b'{"type": "MODIFIED"}\n',
        b'{"type": "MODIFIED", "object": {"metadata": {"name": "a"}}}\n',
        b'{"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "9"}}}\n',
        b'{"type": "NOVEL", "object": {"metadata": {"name": "a", "resourceVersion": "9"}}}\n',
        b'{"type": "BOOKMARK", "object": {"metadata": {}}}\n',
        b'{"type": "ADDED", "object": {"metadata": {"name": "big", "resourceVersion": "9"}, "x": "%s"}}\n'
        % (b"x" * 100_000),
        b"x" * 100_000,
    ],
    ids=lambda line: f"{line[:60]!r}-{len(line)}",
)
def test_line_that_is_no_event_means_a_new_list(line: bytes) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        async with following(cluster, max_line=65536) as followed:
            await cluster.until_watched(CRDS)
            await cluster.send_raw(CRDS, line)
            put(cluster, "b")
            await followed.until(lambda: followed.lists() == 2)
            await followed.until_names("a", "b")
            cluster.delete(CRDS, "a")
            await followed.until_names("b")

    run(scenario)


def test_large_event_within_the_bound_is_taken() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            cluster.put(CRDS, named("large", text="x" * 2_000_000))
            await followed.until_names("large")
            assert followed.lists() == 1

    run(scenario)


def test_empty_lines_and_split_lines_are_no_matter() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        event = b'{"type": "ADDED", "object": {"metadata": {"name": "s", "resourceVersion": "1001"}}}\r\n'
        async with following(cluster) as followed:
            await cluster.until_watched(CRDS)
            await cluster.send_raw(CRDS, b"\n\n" + event[:20])
            await asyncio.sleep(0.02)
            await cluster.send_raw(CRDS, event[20:])
            await followed.until_names("s")

    run(scenario)


def test_watch_that_always_ends_at_once_loses_nothing_and_does_not_hammer() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.watch_life = 0.02
        async with following(cluster, timing=replace(QUICK, backoff_max=0.08)) as followed:
            await followed.until(lambda: followed.watches() > 4)
            started, before = time.monotonic(), followed.watches()
            for name in "abcdefgh":
                put(cluster, name)
                await asyncio.sleep(0.06)
            await followed.until_names(*"abcdefgh")
            pauses = (time.monotonic() - started) / (0.04 + 0.02)
            assert followed.watches() - before <= pauses + 1
            assert followed.lists() == 1
            assert followed.watch.state.phase is WatchPhase.SYNCED, "a proper end is no failure"

    run(scenario)


def test_watches_that_end_at_once_and_say_nothing_are_checked_with_a_list() -> None:
    async def empty(request: web.Request) -> web.Response | None:
        return web.Response(body=b"") if "watch" in request.query else None

    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        cluster.answers[CRDS] = empty
        async with following(cluster, timing=replace(QUICK, silent_max=0.3)) as followed:
            await followed.until_names("a")
            put(cluster, "b")
            await followed.until_names("a", "b")
            assert followed.lists() == 2

    run(scenario)


@pytest.mark.parametrize("page", [b"<html>Log in</html>", b"[]", b'{"type": "ADDED"'])
def test_answer_that_ends_within_a_line_is_no_watch(page: bytes) -> None:
    async def answered(request: web.Request) -> web.Response | None:
        return web.Response(body=page) if "watch" in request.query else None

    async def scenario(cluster: FakeCluster) -> None:
        put(cluster, "a")
        cluster.answers[CRDS] = answered
        async with following(cluster) as followed:
            await followed.until(lambda: followed.watch.state.failure is not None)
            assert followed.names == ["a"]
            failure = followed.watch.state.failure
            assert failure is not None
            assert failure.cause is Cause.BAD_BODY
            put(cluster, "b")
            await followed.until_names("a", "b")

    run(scenario)


def test_watch_that_stood_is_resumed_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.watch_life = QUICK.standing + 0.05
        async with following(
            cluster, timing=replace(QUICK, backoff_min=600.0, backoff_max=600.0)
        ) as followed:
            await followed.until(lambda: followed.watches() == 4)

    run(scenario)


def test_silent_watch_is_ended_from_our_side() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async def silent(request: web.Request) -> web.StreamResponse | None:
            if "watch" not in request.query:
                return None
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(600)
            return response

        cluster.answers[CRDS] = silent
        timing = replace(QUICK, shortest_life=1.0, longest_life=1.0, grace=0.1)
        async with following(cluster, timing=timing) as followed:
            await followed.until(lambda: followed.watches() == 1)
            started = time.monotonic()
            await followed.until(lambda: followed.watches() == 2)
            assert time.monotonic() - started > 0.5
            assert "timeoutSeconds=1" in cluster.requests[-1].target
            assert followed.watch.state.failure is None

    run(scenario)

"""A watch whose connection died without a word: it is not taken for one that works, and is opened anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from aggregator.kubernetes.followed import QUICK, Followed, following, put
from fakes.cluster import CRDS, FakeCluster
from fakes.freezable_way import FreezableWay
from specmux_aggregator.kubernetes.watch import Timing, WatchPhase
from specmux_aggregator.model.failure import Cause


@asynccontextmanager
async def followed_over(timing: Timing) -> AsyncIterator[tuple[FakeCluster, FreezableWay, Followed]]:
    async with FakeCluster() as cluster:
        put(cluster, "a")
        cluster.bookmark_interval = 0.05
        async with (
            FreezableWay(int(cluster.url.rpartition(":")[2])) as way,
            following(cluster, timing=timing, url=way.url) as followed,
        ):
            await followed.until_names("a")
            await cluster.until_watched(CRDS)
            yield cluster, way, followed


async def test_watch_without_bookmarks_is_not_synced() -> None:
    async with followed_over(replace(QUICK, bookmarks=0.2)) as (cluster, way, followed):
        version = followed.watch.state.version
        await followed.until(lambda: followed.watch.state.heard_at is not None and followed.watches() == 1)
        put(cluster, "b")
        await followed.until_names("a", "b")
        assert followed.watch.state.version != version
        await followed.until(lambda: followed.watch._has_bookmarks)
        way.freeze()
        put(cluster, "c")
        await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
        assert followed.names == ["a", "b"]
        failure = followed.watch.state.failure
        assert failure is not None
        assert failure.cause is Cause.TIMEOUT
        way.thaw()
        await followed.until_names("a", "b", "c")
        await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
        assert followed.lists() == 1


async def test_watch_that_is_doubted_proves_itself() -> None:
    async with followed_over(QUICK) as (cluster, way, followed):
        watches = followed.watches()
        followed.watch.doubt()
        await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
        await followed.until(lambda: followed.watch.state.phase is WatchPhase.SYNCED)
        assert followed.watches() > watches
        way.freeze()
        followed.watch.doubt()
        put(cluster, "b")
        await followed.until(lambda: followed.watch.state.phase is WatchPhase.FAILING)
        way.thaw()
        await followed.until_names("a", "b")


async def test_server_without_bookmarks_may_be_silent() -> None:
    async with FakeCluster() as cluster:
        cluster.bookmark_interval = None
        put(cluster, "a")
        async with following(cluster, timing=replace(QUICK, bookmarks=0.1)) as followed:
            await followed.until(lambda: followed.watches() >= 3)
            assert followed.watch.state.phase is WatchPhase.SYNCED
            put(cluster, "b")
            await followed.until_names("a", "b")

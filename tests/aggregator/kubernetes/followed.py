"""A watch of a fake cluster, and what it told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from deadline import DEADLINE
from fakes.cluster import CRDS, FakeCluster
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.watch import Timing, Watch
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_cache.access.server_access import Credentials

POLLING = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)


QUICK = Timing(
    standing=0.15, backoff_min=0.02, backoff_max=0.1, ask_again=0.2, grace=0.3, refused_for=0.2, settled=0.05
)  # seconds, of milliseconds' length


@dataclass
class Followed:
    """A running watch, and all that it said."""

    cluster: FakeCluster
    watch: Watch
    path: str
    said: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return sorted(self.said[-1]) if self.said else []

    async def until(self, claim: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not claim():
                await asyncio.sleep(0.005)

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: bool(self.said) and self.names == sorted(names))

    def lists(self) -> int:
        return sum("watch=1" not in entry.target for entry in self.cluster.seen(self.path))

    def watches(self) -> int:
        return sum("watch=1" in entry.target for entry in self.cluster.seen(self.path))


@asynccontextmanager
async def following(
    cluster: FakeCluster,
    path: str = CRDS,
    *,
    timing: Timing = QUICK,
    credentials: Credentials = Credentials(),  # noqa: B008 - frozen
    url: str | None = None,
    polling: PollingSettings = POLLING,
    **client: Any,
) -> AsyncIterator[Followed]:
    server = Backend(name=BackendName("kubernetes"), url=url or cluster.url, credentials=credentials)
    asking = ApiClient(server, polling=polling, **client)
    said: list[Mapping[str, Any]] = []
    watch = Watch(asking, path, on_change=said.append, timing=timing)
    task = asyncio.create_task(watch.run())
    try:
        yield Followed(cluster, watch, path, said)
    finally:
        assert not task.done() or task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asking.close()


def named(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def put(cluster: FakeCluster, *names: str, path: str = CRDS) -> None:
    for name in names:
        cluster.put(path, named(name))


def run(scenario: Callable[[FakeCluster], Any]) -> None:
    async def started() -> None:
        async with FakeCluster() as cluster:
            await scenario(cluster)

    asyncio.run(started())

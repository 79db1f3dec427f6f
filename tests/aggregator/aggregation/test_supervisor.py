"""Backends that come, change and go while they are being checked, and bursts of both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from deadline import DEADLINE
from running.service import backend
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.refresher import Refresher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendKind, ClusterFacts
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

APPS = GroupVersion("apis/apps/v1")
FAST = PollingSettings(interval=0.001, jitter=0.0, backoff_min=0.01, backoff_max=0.02)


class ChangingOrigin:
    """Builds another document at each check, which nobody can ask for again, as of a v2 backend."""

    open = 0

    def __init__(self) -> None:
        self.number = 0
        type(self).open += 1

    async def observe(self, last: Observation) -> Outcome:
        await asyncio.sleep(0.001)
        self.number += 1
        offer = Offer(hash=Hash(f"{id(self):X}x{self.number}"), provenance=Provenance.CONVERTED)
        return BackendOffers(BackendKind.V2, {APPS: offer}, {APPS: offer.hash.encode()})

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        raise AssertionError("never asked for")

    async def close(self) -> None:
        await asyncio.sleep(0)
        type(self).open -= 1


class Bench:
    def __init__(self) -> None:
        self.representations = Representations(max_bytes=10)
        self.publisher = Publisher(self.representations, timed=lambda *_: None)
        self.backends = Backends(self.publisher, make=self._refresher, restore=self._restored)
        self.lost: list[DocumentKey] = []

    def _refresher(self, observation: Observation) -> Refresher:
        return Refresher(
            ChangingOrigin(), observation, polling=FAST, publish=self._publish, observed=lambda *_: None
        )

    async def _publish(self, observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        await self.publisher.publish(observation, bodies)

    async def _restored(self, backend: Backend) -> Observation | None:
        await asyncio.sleep(0.005)  # the disk takes its time, and checks go on meanwhile
        return None

    async def watch(self) -> None:
        """Note every document that is published and that nobody has the bytes of."""
        while True:
            for entry in self.publisher.current.entries.values():
                if self.representations.get(entry.key, JSON, Coding.GZIP) is None:
                    self.lost.append(entry.key)
            await asyncio.sleep(0)


async def test_nothing_is_published_without_its_bytes_in_a_storm_of_reloads_and_changes() -> None:
    bench = Bench()
    watching = asyncio.create_task(bench.watch())
    for priority in range(60):
        kept = backend("a", "http://a", priority=priority)
        changed = backend("b", f"http://b/{priority}")
        await bench.backends.apply([kept, changed] if priority % 3 else [kept])
        await asyncio.sleep(0.003)
    await bench.backends.close()
    watching.cancel()
    assert bench.publisher.current.generation >= 60
    assert not bench.lost
    assert ChangingOrigin.open == 0, "an origin was not closed"


async def test_what_a_backend_offered_stands_when_its_address_did_not_change() -> None:
    bench = Bench()
    await bench.backends.apply([backend("a", "http://a")])
    while APPS not in bench.publisher.current.entries:
        await asyncio.sleep(0.001)
    await bench.backends.apply([backend("a", "http://a", priority=5)])
    assert APPS in bench.publisher.current.entries
    await bench.backends.apply([backend("a", "http://elsewhere", priority=5)])
    assert APPS not in bench.publisher.current.entries
    await bench.backends.apply([])
    assert not bench.publisher.current.observations
    assert bench.backends.refresher("a") is None  # type: ignore[arg-type]
    await bench.backends.close()


async def test_what_servers_offered_stands_while_one_of_them_stays() -> None:
    bench = Bench()
    first, second, third = (f"http://{name}" for name in "abc")
    await bench.backends.apply([backend("ha", first, urls=(first, second))])
    while APPS not in bench.publisher.current.entries:
        await asyncio.sleep(0.001)
    for urls in ((third, second), (third, first), (third,)):
        await bench.backends.apply([backend("ha", urls[0], urls=urls)])
        assert APPS in bench.publisher.current.entries
    await bench.backends.apply([backend("ha", first, urls=(first, second))])
    assert APPS not in bench.publisher.current.entries
    await bench.backends.close()


async def test_backend_goes_on_running_when_only_its_standing_changed() -> None:
    bench = Bench()
    await bench.backends.apply([backend("a", "http://a"), backend("b", "http://b")])
    while bench.publisher.current.entries.get(APPS) is None:
        await asyncio.sleep(0.001)
    running = bench.backends.refresher("b")  # type: ignore[arg-type]
    assert running is not None
    await bench.backends.apply([backend("a", "http://a"), backend("b", "http://b", priority=5)])
    assert bench.publisher.current.entries[APPS].owner == "b"
    found = ClusterFacts(excluded=frozenset({APPS}))
    await bench.backends.apply([backend("a", "http://a"), backend("b", "http://b", found=found)])
    assert bench.publisher.current.entries[APPS].owner == "a"
    await asyncio.sleep(0.05)  # checks go on, and do not bring back what stood before
    assert bench.publisher.current.observations[running.observation.backend.name].backend.found == found
    assert bench.backends.refresher("b") is running  # type: ignore[arg-type]
    await bench.backends.apply([backend("b", "http://b", found=found, proxy_url="http://proxy")])
    assert bench.backends.refresher("b") is not running  # type: ignore[arg-type]
    await bench.backends.close()


async def test_client_that_waits_for_a_check_is_let_go_when_the_backend_is_removed() -> None:
    bench = Bench()
    await bench.backends.apply([backend("a", "http://a")])
    refresher = bench.backends.refresher("a")  # type: ignore[arg-type]
    assert refresher is not None
    waiting = [
        asyncio.create_task(refresher.revalidate(timeout=30.0, newer_than=float("inf"))) for _ in range(20)
    ]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await bench.backends.apply([])
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*waiting, return_exceptions=True)
    assert not refresher._waiting
    await bench.backends.close()


async def test_root_is_there_from_the_beginning_however_short_the_memory() -> None:
    representations = Representations(max_bytes=1)
    publisher = Publisher(representations, timed=lambda *_: None)
    for _ in range(2):
        representations.shed()
        body = representations.get(publisher.current.root, JSON, Coding.IDENTITY)
        assert body == publisher.current.root_json
        await publisher.publish(Observation(backend=backend("http://x"), attempted=True), {})

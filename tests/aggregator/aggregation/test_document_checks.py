"""Published documents are checked once each, whatever else happens to them meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from deadline import DEADLINE
from specmux_aggregator.aggregation import document_checks
from specmux_aggregator.aggregation.document_checks import DocumentChecks, document_checks_of
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.config.settings import DocumentSettings, Settings
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import CheckSummary, DocumentKey, Snapshot
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

OWNER = BackendName("b")
SOUND = CheckSummary(0, 1, ("a warning",))


def snapshot(**hashes: str) -> Snapshot:
    offers = {
        GroupVersion(name): Offer(hash=Hash(each), provenance=Provenance.NATIVE)
        for name, each in hashes.items()
    }
    seen = Observation(backend=Backend(name=OWNER, url="http://b"), offers=offers)
    return merge({OWNER: seen}, generation=1)


class Bench:
    """The documents and the worker of the checks: what they answer, and what they were asked."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes | Failure] = {}
        self.results: dict[str, CheckSummary | WorkerFailed] = {}
        self.asked: list[DocumentKey] = []
        self.checked: list[GroupVersion] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.checks = DocumentChecks(self, self, limits=Limits())  # type: ignore[arg-type]

    async def obtain(self, key: DocumentKey, *_: Any) -> bytes | Failure:
        self.asked.append(key)
        await self.gate.wait()
        return self.bodies.get(key.group_version, b"{}")

    async def run(self, function: Any, body: bytes, name: GroupVersion, *, limits: Limits) -> CheckSummary:
        self.checked.append(name)
        result = self.results.get(name, SOUND)
        if isinstance(result, WorkerFailed):
            raise result
        return result

    def known(self) -> dict[str, str | None]:
        return {name: check.reason for name, check in self.checks.known.items()}


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    bench = Bench()
    task = asyncio.create_task(bench.checks.run())
    try:
        yield bench
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def rest() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_each_document_is_checked_once_for_as_long_as_its_hash_stays() -> None:
    async with running() as bench:
        bench.checks.follow(snapshot(b="1", a="1"))
        assert bench.checks.waiting == 2
        await rest()
        assert bench.checked == ["a", "b"]
        assert bench.known() == {"a": None, "b": None}
        assert bench.checks.known[GroupVersion("a")].summary == SOUND
        bench.checks.follow(snapshot(b="2", a="1", c="1"))
        assert bench.checks.waiting == 2
        assert set(bench.known()) == {"a"}
        await rest()
        assert bench.checked == ["a", "b", "b", "c"]
        bench.checks.follow(snapshot(c="1"))
        assert (set(bench.known()), bench.checks.waiting) == ({"c"}, 0)


async def test_a_document_that_changes_while_it_is_fetched_is_not_known_by_what_it_was() -> None:
    async with running() as bench:
        bench.gate.clear()
        bench.checks.follow(snapshot(a="1", b="1"))
        await rest()
        bench.checks.follow(snapshot(a="2", c="1"))
        bench.gate.set()
        await rest()
        assert [f"{key.group_version} {key.hash}" for key in bench.asked] == ["a 1", "a 2", "c 1"]
        assert {key: check.key.hash for key, check in bench.checks.known.items()} == {"a": "2", "c": "1"}


async def test_what_cannot_be_had_is_tried_again_after_a_while_or_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as bench:
        bench.bodies["a"] = Failure(Cause.TIMEOUT, "silent")
        bench.checks.follow(snapshot(a="1", b="1"))
        await rest()
        assert (bench.known(), bench.checks.waiting, bench.checked) == ({"b": None}, 1, ["b"])
        assert len(bench.asked) == 2, "it asks without a pause"
        monkeypatch.setattr(document_checks, "RETRY", 0.001)
        bench.checks.follow(snapshot(a="1", b="1"))
        async with asyncio.timeout(DEADLINE):
            while len(bench.asked) < 5:
                await asyncio.sleep(0.001)
            del bench.bodies["a"]
            while bench.checks.waiting:
                await asyncio.sleep(0.001)
        assert bench.known() == {"b": None, "a": None}
        assert bench.checked == ["b", "a"]


async def test_a_document_that_ends_its_process_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as bench:
        bench.results["a"] = WorkerFailed("it took too long")
        bench.results["b"] = CheckSummary(2, 0, ("paths: no list", "info: missing"))
        with caplog.at_level(logging.WARNING):
            bench.checks.follow(snapshot(a="1", b="1", c="1"))
            await rest()
            bench.checks.follow(snapshot(a="1", b="1", c="1"))
            await rest()
        assert bench.known() == {"a": "it took too long", "b": None, "c": None}
        assert bench.checks.known[GroupVersion("a")].summary is None
        assert bench.checked == ["a", "b", "c"]
        assert [record.message for record in caplog.records] == [
            "the OpenAPI spec of a of backend b could not be checked: it took too long",
            "the OpenAPI spec of b of backend b does not keep to its standard: 2 errors,"
            " such as paths: no list",
        ]


def test_checks_that_are_off_follow_nothing() -> None:
    class Followed:
        def __init__(self) -> None:
            self.followers: list[Any] = []

        def subscribe(self, follow: Any) -> None:
            self.followers.append(follow)

    publisher: Any = Followed()
    bench: Any = object()
    off = Settings(documents=DocumentSettings(check="off"))
    assert document_checks_of(off, publisher, bench, bench) is None
    assert publisher.followers == []
    on = Settings(documents=DocumentSettings(check="warn"))
    checks = document_checks_of(on, publisher, bench, bench)
    assert checks is not None and publisher.followers == [checks.follow]

"""What the history makes of Snapshots that follow each other, over a worker of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import zstandard

from deadline import DEADLINE
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.changes.entries import ComparisonOutcome, Findings, LogEntry
from specmux_aggregator.changes.history import OTHERS_MAX, History
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.errors import TookTooLong
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

FOUND = Findings({"breaking": 1, "warning": 0, "notice": 0}, 0, b"[]", is_truncated=False)


def snapshot(generation: int, backend: str = "b", *, attempted: bool = True, **hashes: str) -> Snapshot:
    """``hashes``: by the version of one group."""
    offers = {
        GroupVersion(f"apis/g/{version}"): Offer(hash=Hash(hash), provenance=Provenance.NATIVE)
        for version, hash in hashes.items()
    }
    owner = Backend(name=BackendName(backend), url="http://b")
    observation = Observation(backend=owner, offers=offers, attempted=attempted)
    return merge({owner.name: observation}, generation=generation)


class Worker:
    """Compares nothing; says what it was given."""

    def __init__(self) -> None:
        self.given: list[list[bytes]] = []
        self.result: Findings | str | Exception = FOUND

    async def run(
        self, function: object, old: bytes | None, new: bytes | None, others: Sequence[bytes], **_: object
    ) -> Findings | str:
        bodies = [b"" if each is None else zstandard.decompress(each) for each in (old, new, *others)]
        self.given.append(bodies)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Bench:
    """A history without a delay, of documents whose bytes are their hash unless they are ``absent``."""

    def __init__(self) -> None:
        worker: Any = Worker()
        self.worker: Worker = worker
        self.absent: set[str] = set()
        self.noted: list[LogEntry] = []
        self.history = History(
            ChangeSettings(settle=0.0),
            worker,
            None,
            held=self.find_json,
            obtain=lambda _: asyncio.sleep(0, None),
            limits=Limits(),
            noted=lambda entry, _: self.noted.append(entry),
        )

    def find_json(self, key: DocumentKey) -> CodedBody | None:
        return None if key.hash in self.absent else CodedBody(Coding.IDENTITY, key.hash.encode())

    async def publish(self, snapshot: Snapshot) -> list[ComparisonOutcome]:
        """The entries for it."""
        count = len(self.noted)
        self.history.follow(snapshot)
        async with asyncio.timeout(DEADLINE):
            while not self.history.is_settled:
                await asyncio.sleep(0)
        return [entry.outcome for entry in self.noted[count:]]


@asynccontextmanager
async def running() -> AsyncIterator[Bench]:
    bench = Bench()
    await bench.history.start()
    try:
        yield bench
    finally:
        await bench.history.close()


async def test_change_is_an_entry_by_what_is_known_of_its_documents() -> None:
    async with running() as bench:
        assert await bench.publish(snapshot(1, v1="A")) == [], "a start has changed nothing"
        assert await bench.publish(snapshot(2, v1="B")) == [ComparisonOutcome.COMPARED]
        assert bench.worker.given == [[b"A", b"B"]]
        assert await bench.publish(snapshot(3, v1="B")) == []
        assert await bench.publish(snapshot(4, v1="A")) == [ComparisonOutcome.RETURNED]
        assert await bench.publish(snapshot(5, "other", v1="A")) == [ComparisonOutcome.MOVED]
        bench.absent = {"C"}
        assert await bench.publish(snapshot(6, "other", v1="C")) == [ComparisonOutcome.UNAVAILABLE]
        assert await bench.publish(snapshot(7, "other")) == [ComparisonOutcome.UNAVAILABLE]
        assert len(bench.worker.given) == 2
        assert await bench.publish(snapshot(8, "other", v1="D")) == [ComparisonOutcome.COMPARED]
        assert bench.worker.given[2:] == [[b"", b"D"]]
        assert [entry.id for entry in bench.noted] == [entry.id for entry in bench.history.log]
        assert [len(entry.hashes) for entry in bench.noted] == [2, 2, 2, 2, 1, 1]
        assert [entry.counts["breaking"] for entry in bench.noted] == [1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("result", ["too deep", TookTooLong(3.0)])
async def test_comparison_that_fails_is_an_entry(result: str | Exception) -> None:
    async with running() as bench:
        await bench.publish(snapshot(1, v1="A"))
        bench.worker.result = result
        assert await bench.publish(snapshot(2, v1="B")) == [ComparisonOutcome.FAILED]
        bench.worker.result = FOUND
        assert await bench.publish(snapshot(3, v1="C")) == [ComparisonOutcome.COMPARED]


async def test_document_is_compared_among_the_other_versions_of_its_group() -> None:
    others = {f"v{number}": f"other {number}" for number in range(2, OTHERS_MAX + 4)}
    async with running() as bench:
        await bench.publish(snapshot(1, v1="A", **others))
        await bench.publish(snapshot(2, v1="B", **others))
        ((old, new, *given),) = bench.worker.given
        assert (old, new, len(given)) == (b"A", b"B", OTHERS_MAX)
        assert set(given) < {each.encode() for each in others.values()}
        await bench.publish(snapshot(3, v1="B", v99="new", **others))
        assert bench.worker.given[1] == [b"", b"new"], "it removes nothing that others could still serve"


async def test_nothing_is_an_entry_before_all_backends_are_known() -> None:
    async with running() as bench:
        bench.history.follow(snapshot(1, attempted=False, v1="A"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not bench.history.is_settled
        assert await bench.publish(snapshot(2, v1="B")) == []
        assert await bench.publish(snapshot(3, v1="C")) == [ComparisonOutcome.COMPARED]


async def test_others_run_while_thousands_of_documents_settle() -> None:
    names = {f"v{number}": "A" for number in range(1, 2001)}
    turns = 0
    async with running() as bench:
        bench.history.follow(snapshot(1, **names))
        async with asyncio.timeout(DEADLINE):
            while not bench.history.is_settled:
                await asyncio.sleep(0)
                turns += 1
        assert turns >= len(names)

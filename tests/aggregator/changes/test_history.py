"""What the history makes of Snapshots that follow each other, and its endpoint, over a worker of a test."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import zstandard

from deadline import DEADLINE
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.changes.endpoint import PATH, ChangesEndpoint
from specmux_aggregator.changes.entries import ComparisonOutcome, Findings, LogEntry
from specmux_aggregator.changes.history import OTHERS_MAX, History
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.errors import TookTooLong
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_converters.codecs import cbor
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


async def ask(
    bench: Bench, path: str = "", query: str = "", **fields: Any
) -> tuple[int, dict[str, str], bytes]:
    method = fields.pop("method", "GET")
    writer: Any = SimpleNamespace(
        run=lambda _, bodies, form: asyncio.sleep(0, f"{form} {len(bodies)}\n".encode())
    )
    endpoint = ChangesEndpoint(bench.history, writer, is_private=True)
    answer = await endpoint.respond(Request(method, f"{PATH}{path}", query, **fields))
    lines = answer.head.decode().split("\r\n")[1:-1]
    return answer.status, dict(line.split(": ", 1) for line in lines), answer.body


async def test_log_is_answered_in_each_form() -> None:
    async with running() as bench:
        await bench.publish(snapshot(1, v1="A", v2="X"))
        await bench.publish(snapshot(2, v1="B", v2="X"))
        status, fields, body = await ask(bench, "/apis/g/v1")
        assert (status, fields["Content-Type"]) == (200, "application/json")
        assert fields["Cache-Control"] == "private, no-cache"
        assert [each["new"]["hash"] for each in orjson.loads(body)["entries"]] == ["B"]
        _, coded, packed = await ask(bench, "/apis/g/v1", accept_encoding="gzip")
        assert gzip.decompress(packed) == body
        assert coded["ETag"] == fields["ETag"].removesuffix('"') + '-gzip"'
        assert (await ask(bench, "/apis/g/v1", if_none_match=fields["ETag"]))[0] == 304
        assert (await ask(bench, "/apis/g/v1", method="HEAD"))[1:] == (fields, b"")
        _, fields, coded_body = await ask(bench, accept="application/cbor")
        assert (fields["Content-Type"], cbor.decode(coded_body, limits=Limits())) == (
            "application/cbor",
            orjson.loads((await ask(bench))[2]),
        )
        for accept, form in (("text/plain", b"text 1\n"), ("text/markdown", b"markdown 1\n")):
            _, fields, body = await ask(bench, accept=accept)
            assert (fields["Content-Type"], body) == (f"{accept}; charset=utf-8", form)
        assert (await ask(bench, "/apis/g/v2"))[0] == 200, "published, and never changed"
        assert (await ask(bench, "/apis/g/v3"))[0] == 404
        assert (await ask(bench, accept="image/png"))[0] == 406


async def test_documents_are_compared_by_their_hashes_as_long_as_both_are_kept() -> None:
    async with running() as bench:
        await bench.publish(snapshot(1, v1="A"))
        await bench.publish(snapshot(2, v1="B"))
        status, fields, body = await ask(bench, "/apis/g/v1", "from=A&to=B")
        assert (status, orjson.loads(body)["summary"]["breaking"]) == (200, 1)
        assert fields["Cache-Control"] == "private, max-age=31536000, immutable"
        assert bench.worker.given == [[b"A", b"B"]] * 2
        status, _, body = await ask(bench, "/apis/g/v1", "from=A&to=C")
        assert (status, "are: B, A" in orjson.loads(body)["message"]) == (404, True)
        status, _, body = await ask(bench, "/apis/g/v2", "from=A&to=B")
        assert (status, "are: none" in orjson.loads(body)["message"]) == (404, True)
        bench.worker.result = TookTooLong(3.0)
        status, fields, _ = await ask(bench, "/apis/g/v1", "from=A&to=B")
        assert (status, fields["Retry-After"]) == (503, "10")

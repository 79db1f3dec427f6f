"""A document beyond its share of the processes that read all documents: refused alone, and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import DocumentKey, Snapshot
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.reader.process import Unready
from specmux_aggregator.reader.reader_client import PER_BACKEND, Reading
from specmux_aggregator.reader.requests import (
    WHOLE_SHARE,
    DocumentShare,
    ExplainRequest,
    ReaderAnswer,
    SearchRequest,
)
from specmux_aggregator.workers.built import FileContext, SchemaSource, Unencodable
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.paths import file_wanted_at
from specmux_tools.json_schema_job import json_schema
from specmux_tools.reader.questions import explain, search_rows
from specmux_tools.reader.state import ReaderState, add, keep

GOOD, ODD = GroupVersion("apis/good.example.org/v1"), GroupVersion("apis/odd.example.org/v1")
FEW = DocumentShare(max_values=500)


def document(key: GroupVersion, *, fields: int = 1) -> bytes:
    group = key.split("/")[1]
    kind = {"group": group, "version": "v1", "kind": "Thing"}
    properties: dict[str, Any] = {
        f"field{each}": {"type": "string", "description": f"Field {each} of a thing."}
        for each in range(fields)
    }
    schema = {"type": "object", "properties": properties, "x-kubernetes-group-version-kind": [kind]}
    return orjson.dumps({
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "v1"},
        "paths": {},
        "components": {"schemas": {f"{group}.Thing": schema}},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("share", "reason"),
    [
        (DocumentShare(max_bytes=10_000), "more than the 10000 allowed"),
        (DocumentShare(max_values=3_000), "more than the 3000 values allowed"),
        (DocumentShare(cpu_seconds=0.001), "0.001 s of processor time"),
    ],
    ids=["bytes", "values", "time"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Hypothesis's callback of gc
def test_document_beyond_its_share_is_refused_alone(share: DocumentShare, reason: str) -> None:
    state = ReaderState()
    assert add(state, GOOD, "A", document(GOOD), WHOLE_SHARE) is None
    told = add(state, ODD, "B", document(ODD, fields=20_000), share)
    assert told is not None
    assert reason in told
    assert [*state.index.documents] == [GOOD]
    assert len(state.index.graph.names) == 2
    kept = keep(state, "C", document(ODD, fields=20_000), share)
    assert (kept is None) == (share.cpu_seconds < 1)


def test_share_is_never_wider_than_the_settings() -> None:
    strict = replace(DEFAULT_LIMITS, max_bytes=5, max_values=7)
    assert WHOLE_SHARE.within(strict) == strict
    assert FEW.within().max_values == 500


class CountingReader:
    """The reader process's functions in this process; ``handed``: documents that it was given."""

    def __init__(self) -> None:
        self.state = ReaderState()
        self.handed: list[str] = []

    async def ask(self, job: Callable[..., Any], *args: Any) -> Any:
        if isinstance(job, NamedFunction) and job.target.rpartition(":")[2] in ("add", "keep"):
            self.handed.append(next(each for each in args if isinstance(each, str) and len(each) == 3))
        return job(self.state, *args)


class Bodies(dict[str, bytes]):
    """Documents by hash."""

    async def obtain(self, key: DocumentKey, *_: object, **how: object) -> bytes:
        return self[str(key.hash)]


def snapshot_of(**hashes: str) -> Snapshot:
    observations = {}
    for name, key in (("good", GOOD), ("odd", ODD)):
        backend = Backend(name=BackendName(name), url="http://127.0.0.1")
        offers = {key: Offer(hash=Hash(hashes[name]), provenance=Provenance.FILE)}
        observations[backend.name] = Observation(backend=backend, offers=offers, attempted=True)
    return merge(observations, generation=1)


async def searched(reading: Reading) -> Any:
    def job(state: ReaderState, version: str, missing: tuple[str, ...]) -> Any:
        return search_rows(SearchRequest(query="thing"), Coding.IDENTITY, state, version, missing)

    found = await reading.of_all(job)
    assert isinstance(found, ReaderAnswer)
    return orjson.loads(found.body)


async def explained(reading: Reading, key: GroupVersion) -> Any:
    entry = reading.snapshot.entries[key]
    asked = ExplainRequest(group_version=key, hash=str(entry.key.hash), kind="Thing")
    return await reading.of_document(entry, explain, asked, Coding.IDENTITY)


async def test_refused_document_is_named_and_handed_over_once() -> None:
    bodies = Bodies(GGG=document(GOOD), OK1=document(ODD), BIG=document(ODD, fields=200))
    reader, snapshot = CountingReader(), snapshot_of(good="GGG", odd="OK1")
    reading = Reading(reader, bodies, lambda: snapshot, FEW)  # type: ignore[arg-type]
    assert {row["group"] for row in (await searched(reading))["rows"]} == {
        "good.example.org",
        "odd.example.org",
    }
    snapshot = snapshot_of(good="GGG", odd="BIG")
    for _ in range(3):
        found = await searched(reading)
        assert found["incomplete"] == [ODD]
        assert {row["group"] for row in found["rows"]} == {"good.example.org"}
        with pytest.raises(Unready, match="more than the 500 values allowed"):
            await explained(reading, ODD)
        assert isinstance(await explained(reading, GOOD), ReaderAnswer)
    assert reading.refused == {ODD: "more than the 500 values allowed"}
    assert reader.handed == ["GGG", "OK1", "BIG"]
    reader.state = ReaderState()  # another process
    reading._aligned = ""
    assert (await searched(reading))["incomplete"] == [ODD]
    assert reader.handed == ["GGG", "OK1", "BIG", "GGG"]
    snapshot = snapshot_of(good="GGG", odd="OK1")
    assert (await searched(reading))["incomplete"] == []
    assert reading.refused == {}


async def test_backend_has_few_questions_at_a_time() -> None:
    bodies = Bodies(GGG=document(GOOD), OK1=document(ODD))
    snapshot = snapshot_of(good="GGG", odd="OK1")
    reading = Reading(CountingReader(), bodies, lambda: snapshot)  # type: ignore[arg-type]
    owner = snapshot.entries[ODD].owner
    for _ in range(PER_BACKEND):
        await reading._turns.take(owner.encode())
    asked = explained(reading, ODD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specmux_aggregator.reader.reader_client.REQUEST_SECONDS", 0.01)
        with pytest.raises(Unready, match="did not get its turn"):
            await asked
    assert isinstance(await explained(reading, GOOD), ReaderAnswer)
    reading._turns.give_back(owner.encode())
    assert isinstance(await explained(reading, ODD), ReaderAnswer)


@pytest.mark.parametrize("share", [DocumentShare(max_values=500), DocumentShare(cpu_seconds=1e-6)])
def test_files_of_all_kinds_leave_out_what_is_beyond_its_share(share: DocumentShare) -> None:
    odd = SchemaSource(ODD, Hash(f"B{share.max_values}"), document(ODD, fields=20_000))
    good = SchemaSource(GOOD, Hash("A"), document(GOOD))

    def made(path: str, *sources: SchemaSource, share: DocumentShare = share) -> Any:
        file, told = file_wanted_at(path), FileContext(tree="T")
        assert file is not None
        return json_schema(file, sources, told, coding=Coding.IDENTITY, limits=DEFAULT_LIMITS, share=share)

    assert isinstance(made("index.json", good, share=WHOLE_SHARE), bytes)
    for _ in range(2):
        assert isinstance(made("odd.example.org/thing_v1.json", odd), Unencodable)
    if share.cpu_seconds >= 1:
        index = orjson.loads(made("index.json", odd, good))
        assert index["absent"] == [ODD]
        assert "good.example.org" in {kind["group"] for kind in index["kinds"]}

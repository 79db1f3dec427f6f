"""Deltas within their bounds, and work that fails."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
import zstandard

from data.deltas import FILLER
from deadline import DEADLINE
from specmux_aggregator.config.settings import DictionarySettings
from specmux_aggregator.documents.deltas import JOBS_MAX, DeltaResult, Deltas
from specmux_aggregator.documents.representations import CodedBody
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.http.dictionaries import OfferedDictionary, use_as_dictionary
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_aggregator.workers.built import MadeDelta
from specmux_aggregator.workers.documents import DELTA_MAX, BuildMemo, make_delta
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON, PROTOBUF

APPS = GroupVersion("apis/apps/v1")
KEY = DocumentKey(BackendName("a"), APPS, Hash("NEW"))
OLD, NEW = f'{{"old":"{FILLER}"}}'.encode(), f'{{"new":"{FILLER}"}}'.encode()
BODY = CodedBody(Coding.IDENTITY, NEW)
MIB = 1024 * 1024


class FakeWorker:
    """Answers when it is told to; ``asked`` counts its jobs."""

    def __init__(self, made: MadeDelta | Exception) -> None:
        self.made, self.asked, self.go = made, 0, asyncio.Event()

    async def build(self, *_: Any, **__: Any) -> MadeDelta:
        self.asked += 1
        await self.go.wait()
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def offered(hash: str = "OLD") -> OfferedDictionary:
    return OfferedDictionary(Hash(hash), hashlib.sha256(OLD).digest())


def deltas(worker: FakeWorker, *, wait: float = 30) -> Deltas:
    async def document(_: GroupVersion, __: Hash) -> bytes | None:
        return zstandard.compress(OLD)

    settings = DictionarySettings(wait=wait, max_bytes=MIB)
    return Deltas(worker, settings, is_kept=lambda *_: True, document=document, limits=Limits())  # type: ignore[arg-type]


async def test_failure_of_the_worker_is_the_ordinary_answer_and_not_repeated() -> None:
    worker = FakeWorker(WorkerFailed("it died"))
    worker.go.set()
    found = deltas(worker)
    assert [await found.make(KEY, JSON, offered(), BODY) for _ in range(3)] == [b""] * 3
    assert (worker.asked, found.made, found.results) == (1, 0, {DeltaResult.REFUSED: 3})
    assert found.find(KEY, JSON, offered()) == b""


async def test_delta_is_made_once_the_worker_starts_again() -> None:
    worker = FakeWorker(NoWorker("out of processes"))
    worker.go.set()
    found = deltas(worker)
    assert await found.make(KEY, JSON, offered(), BODY) == b""
    worker.made = MadeDelta(offered().digest, b"delta")
    assert await found.make(KEY, JSON, offered(), BODY) == b"delta"


async def test_jobs_and_memory_are_bounded_whatever_clients_invent() -> None:
    worker = FakeWorker(MadeDelta(offered().digest, bytes(100_000)))
    found = deltas(worker, wait=0)
    for number in range(JOBS_MAX + 10):
        assert await found.make(KEY, JSON, offered(f"OLD{number}"), BODY) == b""
        await asyncio.sleep(0.001)
    assert worker.asked == JOBS_MAX
    worker.go.set()
    async with asyncio.timeout(DEADLINE):
        while found.made < JOBS_MAX:
            await asyncio.sleep(0.001)
    assert 0 < found.kept.bytes <= MIB
    assert found.find(KEY, JSON, offered("OLD0")) is None
    assert found.find(KEY, JSON, offered(f"OLD{JOBS_MAX - 1}")) == bytes(100_000)


@pytest.mark.parametrize(
    ("old", "new", "media_type", "is_digested"),
    [
        (OLD, hashlib.sha512(b"").digest(), JSON, True),
        (OLD[:-1], NEW, PROTOBUF, False),
        (OLD, NEW, PROTOBUF, False),
        (b" " * (DELTA_MAX + 1), NEW, JSON, False),
        (OLD, b" " * (DELTA_MAX + 1), JSON, False),
    ],
    ids=["saves nothing", "no JSON", "no Protobuf", "a large predecessor", "a large document"],
)
def test_no_delta_is_made(old: bytes, new: bytes, media_type: Any, *, is_digested: bool) -> None:
    made = make_delta(
        BuildMemo(), zstandard.compress(old), new, Coding.IDENTITY, media_type=media_type, limits=Limits()
    )
    assert made == MadeDelta(hashlib.sha256(old).digest() if is_digested else b"", b"")


def test_document_whose_path_could_be_a_pattern_is_no_dictionary() -> None:
    assert use_as_dictionary("/openapi/v3/apis/apps/v1", Hash("AB")) == 'match="v1?*", id="AB"'
    for path, hash in (("/a/v1*", "AB"), ("/a/:v", "AB"), ("/a/v%31", "AB"), ("/a/", "AB"), ("/a/v1", 'A"B')):
        assert use_as_dictionary(path, Hash(hash)) == ""

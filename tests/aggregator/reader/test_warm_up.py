"""A reader that is warm before anybody asks, and a visitor who waits for one document at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from deadline import DEADLINE
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.reader.reader_client import PAGE_SECONDS, Reading
from specmux_aggregator.reader.requests import ReaderAnswer, Wants
from specmux_converters.group_versions import GroupVersion
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.document_page import load_pages

BACKEND = Backend(name=BackendName("files"), url="http://127.0.0.1")
KEYS = [GroupVersion(f"apis/group{number}.example.org/v1") for number in range(6)]


class FakeReader:
    """One job at a time and in order, in this process; ``jobs``: what was asked. A document waits for
    ``may_add``."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.may_add = asyncio.Event()
        self._state = ReaderState()
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        self.jobs.append("start")

    async def ask(self, job: Callable[..., Any], *args: Any) -> Any:
        async with self._turn:
            name = job.target.partition(":")[2] if isinstance(job, NamedFunction) else job.__name__
            self.jobs.append(name)
            if name == "add":
                await self.may_add.wait()
                self.may_add.clear()
            return job(self._state, *args)

    async def close(self) -> None: ...


class FakeDocuments:
    def find_json(self, key: object) -> None:
        return None

    async def obtain(self, *key: object, **how: object) -> bytes:
        return b'{"openapi": "3.0.0", "paths": {}}'


def home(state: ReaderState, version: str, missing: tuple[str, ...]) -> ReaderAnswer | Wants:
    return ReaderAnswer(",".join(missing).encode()) if state.version == version else Wants(None)


def published(provenance: Provenance) -> Snapshot:
    offers = {key: Offer(hash=Hash(key), provenance=provenance) for key in KEYS}
    return merge({BACKEND.name: Observation(backend=BACKEND, offers=offers, attempted=True)}, generation=1)


def reading_of(reader: FakeReader, provenance: Provenance) -> Reading:
    snapshot = published(provenance)
    return Reading(reader, FakeDocuments(), lambda: snapshot)  # type: ignore[arg-type]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_process_starts_at_once_and_is_filled_when_documents_are_known() -> None:
    reader, is_known = FakeReader(), False
    reading = reading_of(reader, Provenance.FILE)
    warming = asyncio.create_task(reading.warm_up(home, first=load_pages, is_known=lambda: is_known))
    await until(lambda: reader.jobs == ["start", "load_pages"])
    is_known = True
    for _ in KEYS:
        await until(lambda: reader.jobs[-1] == "add" and not reader.may_add.is_set())
        reader.may_add.set()
        await until(lambda: not reader.may_add.is_set())
    await asyncio.wait_for(warming, DEADLINE)
    assert reader.jobs == ["start", "load_pages", "align", *["add"] * len(KEYS), "home"]
    # The first visitor waits for the page alone.
    found = await reading.of_all(home, seconds=0)
    assert (found.body, reader.jobs[-2:]) == (b"", ["home", "home"])  # type: ignore[union-attr]
    assert reading.is_complete


async def test_visitor_before_that_waits_for_one_document_at_most() -> None:
    reader = FakeReader()
    reading = reading_of(reader, Provenance.FILE)
    warming = asyncio.create_task(reading.warm_up(home, first=load_pages, is_known=lambda: True))
    await until(lambda: "add" in reader.jobs)
    visitor = asyncio.create_task(reading.of_all(home, seconds=PAGE_SECONDS))
    await asyncio.sleep(PAGE_SECONDS + 0.1)
    reader.may_add.set()
    found = await asyncio.wait_for(visitor, DEADLINE)
    # The document that was under way, then the page, which names the rest.
    assert reader.jobs[: reader.jobs.index("home") + 1] == ["start", "load_pages", "align", "add", "home"]
    assert len(found.body.split(b",")) >= len(KEYS) - 1  # type: ignore[union-attr]
    warming.cancel()
    await reading.close()


async def test_backends_are_not_asked_for_documents_before_somebody_comes() -> None:
    reader = FakeReader()
    reading = reading_of(reader, Provenance.NATIVE)
    await asyncio.wait_for(reading.warm_up(home, first=load_pages, is_known=lambda: True), DEADLINE)
    assert reader.jobs == ["start", "load_pages", "align", "home"]
    assert not reading.is_complete

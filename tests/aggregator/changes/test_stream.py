"""The stream of changes and publications, as clients read it: forms, resuming, limits, an orderly end."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import cbor2
import orjson
import yaml

from data.compared import definition
from deadline import DEADLINE
from running.service import Client, service
from specmux_aggregator.changes.endpoint import Query, page_of
from specmux_aggregator.changes.entries import ComparisonOutcome, PublishedVersion, entry_of, read_entry
from specmux_aggregator.changes.events import (
    MOST_FOLLOWERS,
    MOST_QUEUED,
    SILENCE,
    EventFollower,
    Feed,
    Followers,
)
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.config.settings import ChangeSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.backend import BackendKind as BackendKind
from specmux_aggregator.model.observation import Hash
from specmux_cache import AsyncSchemaCache, CacheOptions
from specmux_converters.group_versions import GroupVersion

STRING = {"type": "string"}
KEY = GroupVersion("apis/example.com/v1")
QUICK = ChangeSettings(settle=0.02)


def write(folder: Path, *names: str) -> None:
    schema = {"type": "object", "properties": dict.fromkeys(names, STRING)}
    (folder / "widgets.yaml").write_text(yaml.safe_dump(definition(schema)))


@asynccontextmanager
async def changing(folder: Path) -> AsyncIterator[Client]:
    write(folder, "a")
    crds = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, directory=folder)
    async with service(crds, changes=QUICK) as client:
        await client.ready()
        assert client.app.history is not None
        history = client.app.history
        await client.until(lambda: history.is_settled, "settled")
        yield client


async def logged(client: Client, count: int) -> None:
    assert client.app.history is not None
    log = client.app.history.log
    await client.until(lambda: len(log) >= count, f"{count} entries")


async def events(answer: aiohttp.ClientResponse, count: int) -> list[dict[str, str]]:
    """The fields of so many events; comments are passed over."""
    found: list[dict[str, str]] = []
    fields: dict[str, str] = {}
    async with asyncio.timeout(DEADLINE):
        while len(found) < count:
            line = (await answer.content.readline()).decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif not line and fields:
                found.append(fields)
                fields = {}
    return found


@asynccontextmanager
async def following(client: Client, query: str = "", **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
    fields = {"Accept": "text/event-stream"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{client.base}/openapi/changes{query}", headers=fields) as answer,
    ):
        yield answer


async def test_a_change_is_streamed_once_and_resumed_after_its_id(tmp_path: Path) -> None:
    async with changing(tmp_path) as client:
        async with following(client) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert answer.headers["Cache-Control"] == "no-store"
            write(tmp_path, "a", "b")
            (first,) = await events(answer, 1)
        assert first["event"] == "change"
        entry = orjson.loads(first["data"])
        assert (str(entry["id"]), entry["groupVersion"]) == (first["id"], KEY)
        for number, names in enumerate((("a", "b", "c"), ("a", "b", "c", "d"))):
            write(tmp_path, *names)
            await logged(client, number + 2)
        async with following(client, Last_Event_ID=first["id"]) as answer:
            later = await events(answer, 2)
        paths = [[each["path"] for each in orjson.loads(item["data"])["changes"]] for item in later]
        assert paths == [["spec.c"], ["spec.d"]]
        async with following(client, f"?since={later[0]['id']}") as answer:
            assert await events(answer, 1) == later[1:]
        async with following(client, "?since=1") as answer:
            assert len(await events(answer, 3)) == 3


async def test_publications_begin_with_all_and_go_on_with_what_differs(tmp_path: Path) -> None:
    async with changing(tmp_path) as client:
        async with following(client, "?kind=publications") as answer:
            (everything,) = await events(answer, 1)
            assert everything["event"] == "publications"
            published = orjson.loads(everything["data"])
            assert published[KEY]["backend"] == "crds"
            write(tmp_path, "a", "b")
            (one,) = await events(answer, 1)
        assert one["event"] == "publication"
        changed = orjson.loads(one["data"])
        assert changed.keys() == {KEY}
        assert f"hash={changed[KEY]['hash']}" in (await client.paths())[KEY]
        async with following(client, "?kind=publications", Last_Event_ID=everything["id"]) as answer:
            assert await events(answer, 1) == [one]
        async with following(client, "?kind=publications", Last_Event_ID="1") as answer:
            assert [each["event"] for each in await events(answer, 1)] == ["publications"]


async def test_json_lines_and_a_cbor_sequence_say_the_same(tmp_path: Path) -> None:
    async with changing(tmp_path) as client:
        write(tmp_path, "a", "b")
        await logged(client, 1)
        async with following(client, "?since=0") as answer:
            (event,) = await events(answer, 1)
        wanted = {"event": "change", "id": int(event["id"]), "data": orjson.loads(event["data"])}
        async with following(client, "?since=0", Accept="application/jsonl") as answer:
            lines = [await answer.content.readline() for _ in range(2)]
        assert [orjson.loads(line) for line in lines if line.strip()] == [wanted]
        async with following(client, "?since=0", Accept="application/cbor-seq") as answer:
            data = b""
            while len(data) < 20:
                data += await answer.content.readany()
        decoder = cbor2.CBORDecoder(io.BytesIO(data))
        assert repr(decoder.decode()) == "undefined"  # a sign of life
        assert decoder.decode() == wanted


async def test_what_is_asked_wrongly_is_refused(tmp_path: Path) -> None:
    async with changing(tmp_path) as client:
        for query in ("?since=x", "?kind=rumours", "?since=" + "9" * 40):
            async with following(client, query) as answer:
                assert answer.status == 400
        async with following(client, Accept="*/*") as answer:
            assert answer.headers["Content-Type"] == "application/json"


async def test_the_end_of_the_service_is_told(tmp_path: Path) -> None:
    async with changing(tmp_path) as client, following(client) as answer:
        stopping = asyncio.create_task(client.app.stop())
        assert client.app.history is not None
        where = str(client.app.history.log.last_id)
        assert [(each["event"], each["id"]) for each in await events(answer, 1)] == [("reset", where)]
        assert await answer.content.read() == b""
        await stopping


async def test_a_follower_that_left_is_forgotten(tmp_path: Path) -> None:
    async with changing(tmp_path) as client:
        history = client.app.history
        assert history is not None
        async with following(client):
            await client.until(lambda: len(history.followers) == 1)
            assert b"specmux_change_subscribers 1.0" in (await client.get("/metrics"))[2]
        await client.until(lambda: len(history.followers) == 0)


def followers(entries: int = 3) -> Followers:
    log = ChangeLog(most_entries=entries, most_bytes=1 << 20)
    return Followers(log, most_of_address=0)


def note(followers: Followers, number: int) -> None:
    versions = (None, PublishedVersion(Hash(str(number)), BackendName("b")))
    entry = entry_of(number, 0.0, KEY, ComparisonOutcome.COMPARED, versions)
    followers._log.add(entry)
    followers.note_change(entry)


def note_next(followers: Followers, hash: str) -> None:
    versions = (None, PublishedVersion(Hash(hash), BackendName("b")))
    entry = entry_of(followers._log.next_id(), 0.0, KEY, ComparisonOutcome.COMPARED, versions)
    followers._log.add(entry)
    followers.note_change(entry)


async def test_who_reads_too_slowly_is_cut() -> None:
    hub = followers()
    slow = hub.add(Feed.CHANGES, None)
    assert slow is not None
    for number in range(1, MOST_QUEUED + 1):
        note(hub, number)
    assert not slow.is_cut
    note(hub, MOST_QUEUED + 1)
    assert await slow.next(1) is None
    assert slow.is_cut


async def test_who_missed_what_is_gone_is_told_so() -> None:
    hub = followers(entries=2)
    for number in range(1, 5):
        note(hub, number)
    late, early = hub.add(Feed.CHANGES, 1), hub.add(Feed.CHANGES, 2)
    assert late is not None
    assert early is not None
    told = [await late.next(1) for _ in range(3)]
    assert [(event.name, event.id) for event in told if event] == [("reset", 2), ("change", 3), ("change", 4)]
    told = [await early.next(1) for _ in range(2)]
    assert [(event.name, event.id) for event in told if event] == [("change", 3), ("change", 4)]
    assert await early.next(0.01) is SILENCE


async def test_no_more_follow_than_may() -> None:
    hub = followers()
    taken = [hub.add(Feed.CHANGES, None) for _ in range(MOST_FOLLOWERS)]
    assert None not in taken
    assert hub.add(Feed.CHANGES, None) is None
    assert taken[0] is not None
    hub.remove(taken[0])
    assert hub.add(Feed.CHANGES, None) is not None


async def test_publications_that_are_not_remembered_begin_anew() -> None:
    hub = followers()
    beginning = hub.add(Feed.PUBLICATIONS, None)
    assert beginning is not None
    first = await beginning.next(0.01)
    assert first is not None
    for hash in ("A", "B", "B"):  # the last time nothing differs
        hub.note_published({KEY: PublishedVersion(Hash(hash), BackendName("b"))})
    last = first.id + 2
    for since, names in (
        (first.id, ["publication", "publication"]),
        (first.id + 1, ["publication"]),
        (first.id - 1, ["publications"]),
        (last + 1, ["publications"]),
    ):
        follower = hub.add(Feed.PUBLICATIONS, since)
        assert follower is not None
        assert [await told(follower) for _ in names] == [
            (name, last - len(names) + 1 + n) for n, name in enumerate(names)
        ]
    again = hub.add(Feed.PUBLICATIONS, last)
    assert again is not None
    assert await again.next(0.01) is SILENCE


async def told(follower: EventFollower) -> tuple[str, int] | None:
    event = await follower.next(0.01)
    return None if event is None else (event.name, event.id)


async def test_an_id_of_another_replica_is_answered_with_all_or_a_reset() -> None:
    """B saw X, then Y; a reader of A was told X alone, and comes back to B."""
    here, there = followers(), followers()
    for hub, hashes in ((there, "X"), (here, "XY")):
        for hash in hashes:
            hub.note_published({KEY: PublishedVersion(Hash(hash), BackendName("b"))})
            note_next(hub, hash)
    reader, watcher = there.add(Feed.PUBLICATIONS, None), there.add(Feed.CHANGES, 1)
    assert reader is not None
    assert watcher is not None
    last, last_change = await told(reader), await told(watcher)
    assert last is not None
    assert last_change is not None
    back = here.add(Feed.PUBLICATIONS, last[1])
    assert back is not None
    event = await back.next(0.01)
    assert event is not None
    assert event.name == "publications"
    assert orjson.loads(event.data)[KEY]["hash"] == "Y"
    back = here.add(Feed.CHANGES, last_change[1])
    assert back is not None
    assert (await told(back) or ("",))[0] == "reset"


async def test_an_id_of_an_earlier_life_is_answered_with_a_reset() -> None:
    before = followers()
    note_next(before, "A")
    last = before._log.last_id
    without_state = followers()
    back = without_state.add(Feed.CHANGES, last)
    assert back is not None
    assert (await told(back) or ("",))[0] == "reset"
    for since in (1795326013220, 12345678901234567):  # a clock's milliseconds, and a log that nobody has
        back = without_state.add(Feed.CHANGES, since)
        assert back is not None
        assert (await told(back) or ("",))[0] == "reset"


async def test_what_was_dropped_is_known_after_a_restart() -> None:
    before = followers(entries=3)
    for number in range(10):
        note_next(before, str(number))
    log = before._log
    missed = log.last_id - 8
    again = ChangeLog(most_entries=3, most_bytes=1 << 20)
    again.restore(entry for body in log if (entry := read_entry(body.body)) is not None)
    for kept in (before, Followers(again)):
        follower = kept.add(Feed.CHANGES, missed)
        assert follower is not None
        names = [await told(follower) for _ in range(4)]
        assert [name for name, _ in filter(None, names)] == ["reset", "change", "change", "change"]
    assert again.next_id() == log.last_id + 1
    assert again.since(log.last_id - 3)[0]
    assert not again.since(1)[0]


def test_log_is_complete_since_the_oldest_entry_behind_the_dropped_ones() -> None:
    log = ChangeLog(most_entries=3, most_bytes=1 << 20)
    assert log.complete_since is None
    log.began_at = 50.0
    for number in range(5):
        version = PublishedVersion(Hash(str(number)), BackendName("b"))
        log.add(entry_of(log.next_id(), 100.0 + number, KEY, ComparisonOutcome.COMPARED, (None, version)))
        assert log.complete_since == (50.0 if number < 3 else 98.0 + number)
    again = ChangeLog(most_entries=3, most_bytes=1 << 20)
    again.restore(log)
    again.began_at = 50.0
    assert again.complete_since == 102.0


def test_entries_that_were_not_written_are_gone() -> None:
    """One in the middle was lost: a reader that was told the one before it is not told the rest alone."""
    log = followers()._log
    hub = Followers(log)
    for number in range(4):
        note_next(hub, str(number))
    kept = [entry for entry in log if entry.id != log.last_id - 1]
    again = ChangeLog(most_entries=9, most_bytes=1 << 20)
    again.restore(kept)
    for number in (1, log.last_id - 3):  # what came before the gap would lead to nothing that follows
        assert again.since(number) == (False, kept[-1:])
    elsewhere = page_of(again, GroupVersion(""), Query(since=log.last_id + 10**8))
    assert elsewhere.is_reset and elsewhere.entries == kept[-1:]
    assert again.since(log.last_id - 1)[0]


def test_a_log_of_an_earlier_version_goes_on_under_a_name_of_its_own() -> None:
    versions = (None, PublishedVersion(Hash("A"), BackendName("b")))
    old = entry_of(1795326013220, 0.0, KEY, ComparisonOutcome.COMPARED, versions)
    log = ChangeLog(most_entries=9, most_bytes=1 << 20)
    log.restore([old])
    assert log.since(old.id) == (False, [])
    entry = entry_of(log.next_id(), 1.0, KEY, ComparisonOutcome.COMPARED, versions)
    log.add(entry)
    assert log.since(entry.id) == (True, [])
    assert log.since(1) == (True, [old, entry])
    assert log.next_id() < 1 << 53


def test_a_log_whose_numbers_are_used_up_goes_on_under_another_name() -> None:
    log = ChangeLog(most_entries=9, most_bytes=1 << 20)
    first = log.last_id
    log.last_id += 10**8 - 1
    following = log.next_id()
    assert following % 10**8 == 1
    assert first + 10**8 < following < 1 << 53


async def test_a_client_of_the_cache_follows_without_asking(tmp_path: Path) -> None:
    folder = tmp_path / "crds"
    folder.mkdir()
    async with changing(folder) as client:
        options = CacheOptions(directory=tmp_path / "cache")
        async with (
            asyncio.timeout(DEADLINE),
            AsyncSchemaCache(client.base, options) as cache,
            aclosing(cache.follow(interval=60)) as publications,
        ):
            first = await anext(publications)
            assert (first.group_version, first.previous) == (KEY, None)
            write(folder, "a", "b")
            second = await anext(publications)
            assert (second.group_version, second.previous) == (KEY, first.hash)
            assert (await cache.schema(KEY)).hash == second.hash


class HeldArchive:
    """Keeps nothing, and takes its time for an entry."""

    def __init__(self) -> None:
        self.asked, self.may_end = asyncio.Event(), asyncio.Event()

    async def keep_change(self, name: str, number: int, body: bytes) -> None:
        self.asked.set()
        await self.may_end.wait()

    def drop_change(self, name: str, number: int) -> None: ...

    def keep_published(self, body: bytes) -> None: ...

    def keep_beginning(self, at: float) -> None: ...

    def keep_document(self, name: str, hash: str, body: bytes) -> None: ...

    async def recall_changes(self) -> tuple[list[bytes], bytes | None, float | None]:
        return [], None, None

    async def recall_document(self, name: str, hash: str) -> bytes | None:
        return None


async def test_who_comes_while_an_entry_is_written_is_told_it_once(tmp_path: Path) -> None:
    async with changing(tmp_path) as client, asyncio.timeout(DEADLINE):
        history = client.app.history
        assert history is not None
        history._archive = archive = HeldArchive()
        write(tmp_path, "b")
        await archive.asked.wait()
        followers = [history.followers.add(Feed.CHANGES, since) for since in (1, None)]
        archive.may_end.set()
        await logged(client, 1)
        for follower in followers:
            assert follower is not None
            event = await follower.next(5)
            assert event is not None
            assert event.name == "change"
            assert await follower.next(0.1) is SILENCE

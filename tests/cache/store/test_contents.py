"""Index and body files agree whatever happens between two steps."""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING

import pytest

from specmux_cache.errors import DiskFull, StoreFull, StoreUnavailable
from specmux_cache.store.bodies import Bodies, digest_of
from specmux_cache.store.contents import Contents, store_error_of
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import key_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from specmux_cache.store.rows import RawEntry

BODY = random.Random(2).randbytes(50_000)


def key(group_version: str = "apps/v1", hash_: str = "1") -> Key:
    return Key("https://one", "anonymous", group_version, hash_, "application/json")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    with DiskStore.open(tmp_path / "cache") as opened:
        yield opened


def test_small_bodies_count_from_the_first_on(store: DiskStore) -> None:
    (store.directory / "tmp").mkdir()
    (store.directory / "tmp" / "left").write_bytes(BODY)
    for number in range(3):
        before = store._contents.bytes_used()
        store.put(key(f"g{number}/v1"), b"x", metadata={})
        assert store._contents.bytes_seen == before


def test_small_bodies_look_at_the_rest_of_the_folder_twice_a_second(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    overhead, looks, now = Bodies.overhead, list[float](), [100.0]

    def note_and_look(self: Bodies) -> int:
        looks.append(now[0])
        return overhead(self)

    monkeypatch.setattr(Bodies, "overhead", note_and_look)
    monkeypatch.setattr("specmux_cache.store.contents.time.monotonic", lambda: now[0])
    for now[0] in (100.0, 100.25, 100.5, 100.75, 101.5):
        store._contents.insert(
            key(), b"x", metadata={}, compress=True, now=1.0, make_room=lambda: pytest.fail("there is room")
        )
    assert looks == [100.0, 100.5, 101.5]


def test_a_small_body_finds_the_room_that_was_made(tmp_path: Path) -> None:
    limits = StoreLimits(high_bytes=400_000, room_timeout=0.0)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        store.put(key(), b"x", metadata={})
        temporary = store.directory / "tmp" / "left"
        temporary.parent.mkdir()
        temporary.write_bytes(BODY * 8)
        store._contents._looked_at = float("-inf")
        with pytest.raises(StoreFull, match="no room"):
            store.put(key(), b"y", metadata={})
        temporary.unlink()
        store.put(key(), b"y", metadata={})


def test_a_body_above_all_of_the_bound_is_refused_at_once(tmp_path: Path) -> None:
    limits = StoreLimits(high_bytes=40_000)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        with pytest.raises(StoreFull, match="larger than high_bytes"):
            store.put(key(), BODY, metadata={})
        assert store._contents.index.pending(limit=-1) == []


def test_a_body_counts_before_its_file_is_there(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write, seen = Bodies.write, list[tuple[list[str], int]]()

    def look_and_write(self: Bodies, data: bytes) -> Path:
        pending = [body.digest for body in store._contents.index.pending(limit=-1)]
        seen.append((pending, store._contents.index.body_bytes()))
        return write(self, data)

    monkeypatch.setattr(Bodies, "write", look_and_write)
    store.put(key(), BODY, metadata={})
    assert seen == [([digest_of(BODY)], 53_248)]
    assert store._contents.index.pending(limit=-1) == []


def test_a_body_that_cannot_be_published_leaves_nothing(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Bodies, temporary: Path, digest: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(Bodies, "publish", fail)
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            store.put(key(), BODY, metadata={})
    assert list((store.directory / "tmp").iterdir()) == []
    assert (store.stats().entries, store.stats().bodies) == (0, 0)


def test_a_body_that_another_writes_is_written_again(store: DiskStore) -> None:
    index = store._contents.index
    index.write_body(digest_of(BODY), encoding="zstd", allocated=4096, pending=True, now=0.0)
    store.put(key(), BODY, metadata={})
    found = store.get(key())
    assert found is not None
    assert found.body == BODY
    assert store.check() == ()


def test_entries_of_a_body_that_is_gone_go_together(store: DiskStore) -> None:
    for name in ("a/v1", "b/v1"):
        store.put(key(name), BODY, metadata={})
    store.put(key("other/v1"), b"x", metadata={})
    digest = digest_of(BODY)
    (store.directory / "bodies" / digest[0] / digest).unlink()
    assert store.get(key("a/v1")) is None
    assert [row.key for row in store.rows()] == [key("other/v1")]
    assert (store.stats().damaged, store.stats().bodies) == (1, 0)


def test_an_entry_that_is_stored_again_or_removed_while_it_is_read_is_what_it_is_then(
    store: DiskStore,
) -> None:
    store.put(key(), BODY, metadata={})
    found = store.get(key())
    assert found is not None
    assert store._contents._body_or_discard(found.row) == BODY
    assert store.stats().damaged == 0
    store.delete(key())
    assert store._contents._body_or_discard(found.row) is None


def test_only_a_row_that_is_still_damaged_is_dropped(store: DiskStore) -> None:
    store.put(key(), b"x", metadata={})
    for text in (key_text(key()), "[none"):
        store._contents.drop_unsound(text)
    assert (store.stats().entries, store.stats().damaged) == (1, 0)


def test_touch_of_a_damaged_row_is_of_none_and_removes_it(store: DiskStore) -> None:
    store.put(key(), b"x", metadata={})
    store._contents.index.database.execute("UPDATE Cache SET value = 'x' WHERE key LIKE '[%'")
    assert not store.touch(key(), metadata={})
    assert (store.stats().entries, store.stats().damaged) == (0, 1)


def test_a_revision_that_is_read_is_the_current_one(tmp_path: Path) -> None:
    now = [1000.0]
    with DiskStore.open(tmp_path / "cache", clock=lambda: now[0]) as store:
        for hash_ in "12":
            now[0] += 100
            store.put(key(hash_=hash_), b"x", metadata={})
        now[0] += 100
        store.get(key(hash_="1"))
        assert {row.key.hash: row.superseded for row in store.rows()} == {"1": False, "2": True}


def test_a_use_waits_for_no_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    with (
        DiskStore.open(tmp_path / "cache", clock=lambda: now[0]) as store,
        DiskStore.open(tmp_path / "cache") as writer,
    ):
        store.put(key(), b"x", metadata={})
        now[0] += 100
        with writer._contents.index.database.transaction():
            monkeypatch.setattr("specmux_cache.store.database.time.sleep", lambda _: pytest.fail("it waits"))
            assert store.get(key()) is not None
        assert [row.accessed_at for row in store.rows()] == [1000.0]


def test_a_full_disk_gives_up_reserve_and_log_to_delete(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop, sizes = Contents._drop, list[int]()

    def drop_with_room(self: Contents, choose: Callable[[], Sequence[RawEntry]]) -> int:
        sizes.append((store.directory / "cache.db-wal").stat().st_size)
        if (store.directory / "reserve").exists():
            raise DiskFull("full", directory="")
        return drop(self, choose)

    store.put(key(), BODY, metadata={})
    monkeypatch.setattr(Contents, "_drop", drop_with_room)
    assert store.delete(key())
    assert sizes[0] > sizes[1] == 0


def test_bytes_needed_are_those_used_when_free_pages_and_log_are_given_back(store: DiskStore) -> None:
    for number in range(200):
        store.put(key(f"g{number}/v1"), b"x" * 4000, metadata={})
    store.clear()
    contents = store._contents
    contents.index.database.execute("PRAGMA wal_checkpoint(PASSIVE)")
    needed = contents.bytes_needed()
    assert needed < contents.bytes_used() - 500_000
    store.compact()
    assert abs(contents.bytes_used() - needed) <= 8 * 4096


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), DiskFull, os.strerror(errno.ENOSPC)),
        (OSError(errno.EIO, "broken"), StoreUnavailable, "broken"),
        (OSError("without a number"), StoreUnavailable, "without a number"),
    ],
)
def test_errors_of_the_system_say_what_it_said(
    tmp_path: Path, error: OSError, kind: type[Exception], reason: str
) -> None:
    found = store_error_of(error, tmp_path)
    assert type(found) is kind
    assert (found.reason, found.directory) == (reason, str(tmp_path))

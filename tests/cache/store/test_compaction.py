"""What goes, in which order, and that the bound holds in allocated bytes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Final

import pytest

from shared_data import DATA, read
from specmux_cache.store.compaction import CompactionReport
from specmux_cache.store.directory import hold_lock
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1024 * 1024
DAY: Final = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def key(group_version: str, hash_: str = "1") -> Key:
    return Key("https://one", "anonymous", group_version, hash_, "application/json")


def noise(size: int) -> bytes:
    """That does not compress."""
    return os.urandom(size)


def allocated(directory: Path) -> int:
    """What du says; a compaction may be removing what it looks at."""
    total = 0
    for root, _, files in os.walk(directory):
        for path in (root, *(f"{root}/{name}" for name in files)):
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(path).st_blocks * 512
    return total


def names(store: DiskStore) -> set[str]:
    return {f"{row.key.group_version}#{row.key.hash}" for row in store.rows()}


def compacted(store: DiskStore) -> CompactionReport:
    """Once a compaction in the background, which a jump of the clock may have started, is out of the way."""
    deadline = time.monotonic() + 20
    while (report := store.compact()).skipped:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return report


def test_bytes_used_is_what_du_says(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        for number in range(50):
            store.put(key(f"g{number}/v1"), noise(number * 1000), metadata={})
        assert store.stats().bytes_used == allocated(store.directory)
        store.compact(max_bytes=600_000)
        assert store.stats().bytes_used == allocated(store.directory) <= 600_000


def test_superseded_revisions_go_but_the_last_two(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for revision in range(6):
            clock.now += 100
            store.put(key("apps/v1", str(revision)), noise(5000), metadata={})
        store.put(key("batch/v1", "only"), noise(5000), metadata={})
        report = store.compact()
        assert (report.obsolete, report.entries) == (3, 3)
        assert names(store) == {"apps/v1#3", "apps/v1#4", "apps/v1#5", "batch/v1#only"}


def test_what_was_not_used_for_max_age_goes(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for name in ("left", "read", "revalidated"):
            store.put(key(name), noise(100), metadata={})
        clock.now += 20 * DAY
        store.get(key("read"))
        store.touch(key("revalidated"), metadata={})
        clock.now += 11 * DAY
        assert store.compact().aged == 1
        assert names(store) == {"read#1", "revalidated#1"}
        assert store.compact(max_age=5 * DAY).aged == 2


def test_superseded_go_before_the_least_recently_used(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for name in ("old/v1", "new/v1"):
            clock.now += 1000
            store.put(key(name), noise(100_000), metadata={})
        for revision in ("1", "2"):
            clock.now += 1000
            store.put(key("apps/v1", revision), noise(100_000), metadata={})
        clock.now += 1000
        store.get(key("old/v1"))
        used = store.compact().bytes_after
        report = store.compact(max_bytes=used - 50_000)
        assert (report.superseded, report.unused) == (1, 0)
        assert names(store) == {"old/v1#1", "new/v1#1", "apps/v1#2"}
        report = store.compact(max_bytes=report.bytes_after - 50_000)
        assert (report.superseded, report.unused) == (0, 1)
        assert names(store) == {"old/v1#1", "apps/v1#2"}


def test_compaction_removes_no_more_than_it_must(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for number in range(40):
            clock.now += 1
            store.put(key(f"g{number}/v1"), noise(100_000), metadata={})
        report = store.compact(max_bytes=3 * MIB)
        assert 3 * MIB - 150_000 < report.bytes_after <= 3 * MIB
        assert report.bytes_after == allocated(store.directory)


def test_dry_run_says_what_a_run_does_and_does_nothing(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for number in range(120):
            clock.now += DAY / 3
            store.put(key(f"g{number % 60}/v1", str(number)), noise(20_000), metadata={})
            store.put(key("many/v1", str(number)), b"shared" * 10_000, metadata={})
        everything = names(store)
        preview = store.compact(max_bytes=MIB, dry_run=True)
        assert names(store) == everything
        assert preview.dry_run
        report = store.compact(max_bytes=MIB)
        for field in ("obsolete", "aged", "superseded", "unused"):
            # The preview does not know how much the index itself will shrink.
            assert 0 <= getattr(preview, field) - getattr(report, field) <= 10


def test_a_second_compactor_is_told_that_it_is_locked(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("apps/v1"), b"x", metadata={})
        with hold_lock(store.directory / "compaction.lock", timeout=1) as got:
            assert got
            report = store.compact(max_bytes=0)
        assert (report.skipped, report.entries) == ("locked", 0)
        assert names(store) == {"apps/v1#1"}


def test_leftovers_of_killed_writers_go_after_ten_minutes(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("apps/v1"), noise(5000), metadata={})
        left = [store.directory / "tmp" / ("0" * 32), store.directory / "bodies" / "a" / ("a" * 64)]
        for path in left:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x" * 5000)
        assert store.compact().leftovers == 0
        for path in left:
            os.utime(path, (time.time() - 601, time.time() - 601))
        assert store.compact().leftovers == 2
        assert not any(path.exists() for path in left)
        assert store.get(key("apps/v1")) is not None
        assert store.check() == ()


def test_a_body_announced_and_never_written_goes_after_ten_minutes(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        index = store._contents.index
        index.write_body("b" * 64, encoding="zstd", allocated=MIB, pending=True, now=clock.now)
        assert store.stats().bytes_used > MIB
        assert store.compact().leftovers == 0
        clock.now += 601
        assert store.compact().leftovers == 1
        assert store.stats().bytes_used < MIB


def test_empty_directories_go(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        for number in range(40):
            store.put(key(f"g{number}/v1"), noise(100), metadata={})
        store.compact(max_bytes=0)
        assert not (store.directory / "bodies").exists()
        store.put(key("apps/v1"), b"x", metadata={})
        assert store.get(key("apps/v1")) is not None


def test_compactions_beside_a_writer_end_and_take_nothing_from_under_it(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        compactor = threading.Thread(target=lambda: [store.compact(max_bytes=0) for _ in range(30)])
        compactor.start()
        number = 0
        while compactor.is_alive():
            number += 1
            store.put(key(f"g{number}/v1"), noise(100), metadata={})
        compactor.join()
        assert store.check() == ()


def test_the_index_and_its_log_shrink(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        for number in range(1500):
            store.put(key(f"g{number}/v1"), b"same", metadata={"text": "x" * 500})
        before = (store.directory / "cache.db").stat().st_size
        store.clear()
        store.compact()
        assert (store.directory / "cache.db").stat().st_size < before / 10
        assert (store.directory / "cache.db-wal").stat().st_size == 0


def test_a_clock_that_was_ahead_keeps_nothing_longer(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        clock.now += 10 * DAY
        store.put(key("apps/v1", "ahead"), noise(100), metadata={})
        store.put(key("batch/v1", "ahead"), noise(100), metadata={})
        clock.now -= 10 * DAY
        store.put(key("apps/v1", "back"), noise(100), metadata={})
        assert {
            row.key.hash: row.superseded for row in store.rows("https://one", "anonymous", "apps/v1")
        } == {
            "ahead": True,
            "back": False,
        }
        assert compacted(store).entries == 0
        clock.now += 31 * DAY
        assert compacted(store).aged == 3


def test_a_clock_that_jumps_a_year_and_back_breaks_nothing(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for jump in (365, -730, 365, 0):
            clock.now += jump * DAY
            store.put(key("apps/v1", str(jump)), noise(100), metadata={})
            assert store.get(key("apps/v1", str(jump))) is not None
            store.touch(key("apps/v1", str(jump)), metadata={})
            assert store.check() == ()
        assert store.get(key("apps/v1", "0")) is not None


def test_a_write_above_the_high_mark_compacts_in_the_background(tmp_path: Path) -> None:
    limits = StoreLimits(high_bytes=4 * MIB)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        largest = 0
        for number in range(300):
            store.put(key(f"g{number}/v1"), noise(50_000), metadata={})
            largest = max(largest, allocated(store.directory))
        # One entry above, and what one batch of a compaction writes to the log.
        assert largest < limits.high_bytes + 53_248 + MIB // 2
        assert store.get(key("g299/v1")) is not None
    assert allocated(tmp_path / "cache") <= limits.high_bytes + 53_248
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        compacted(store)
        assert allocated(store.directory) <= limits.low_bytes
        assert store.check() == ()


def test_a_put_after_a_day_compacts_in_the_background(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        store.put(key("apps/v1"), b"x", metadata={})
    clock.now += 31 * DAY
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        store.put(key("batch/v1"), b"y", metadata={})
        deadline = time.monotonic() + 20
        while names(store) != {"batch/v1#1"}:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_fifty_revisions_of_a_document_stay_under_the_bound(tmp_path: Path) -> None:
    document = read(DATA / "k8s-pairs/1.35/v3/api/v1.json.gz")
    limits = StoreLimits(high_bytes=2 * MIB)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        for revision in range(50):
            body = document.replace(b'"openapi":', b'"x-revision":%d,"openapi":' % revision, 1)
            store.put(key("v1", str(revision)), body, metadata={"etag": f'"{revision}"'})
            assert allocated(store.directory) < limits.high_bytes + MIB // 2
        compacted(store)
        assert allocated(store.directory) <= limits.low_bytes
        found = store.get(key("v1", "49"))
        assert found is not None
        assert b'"x-revision":49' in found.body

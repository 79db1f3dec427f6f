"""What goes, in which order, and that the bound holds in allocated bytes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Final

import pytest

from shared_data import DATA, read
from specmux_cache.errors import StoreBusy
from specmux_cache.store.compaction import Compaction, CompactionReport, Goal
from specmux_cache.store.directory import hold_lock
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.index import Index
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


@pytest.mark.parametrize("off", [-601, 601])
def test_leftovers_of_killed_writers_go_after_ten_minutes_or_by_a_clock_ahead(
    tmp_path: Path, off: int
) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("apps/v1"), noise(5000), metadata={})
        left = [store.directory / "tmp" / ("0" * 32), store.directory / "bodies" / "a" / ("a" * 64)]
        for path in left:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x" * 5000)
        assert store.compact().leftovers == 0
        for path in left:
            os.utime(path, (time.time() + off, time.time() + off))
        assert store.compact().leftovers == 2
        assert not any(path.exists() for path in left)
        assert store.get(key("apps/v1")) is not None
        assert store.check() == ()


@pytest.mark.parametrize("off", [600, -600])
def test_a_body_announced_and_never_written_goes_after_ten_minutes(
    tmp_path: Path, clock: Clock, off: int
) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        index = store._contents.index
        index.write_body("b" * 64, encoding="zstd", allocated=MIB, pending=True, now=clock.now)
        assert store.stats().bytes_used > MIB
        assert store.compact().leftovers == 0
        clock.now += off
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


@contextlib.contextmanager
def compaction_of(
    store: DiskStore, goal: Goal, *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Compaction]:
    contents = store._open_contents()
    try:
        yield Compaction(contents, goal, clock=store._clock, stopped=stopped)
    finally:
        contents.close()


def test_report_counts_the_entries_of_every_reason() -> None:
    assert CompactionReport(obsolete=1, aged=2, superseded=4, unused=8, leftovers=16).entries == 15


def test_a_compaction_that_was_stopped_removes_nothing_more(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        for number in range(3):
            store.put(key(f"g{number}/v1"), noise(5000), metadata={})
        left = store.directory / "tmp" / ("0" * 32)
        left.write_bytes(b"x")
        os.utime(left, (time.time() - 601, time.time() - 601))
        with compaction_of(store, Goal(0, -1.0), stopped=lambda: True) as compaction:
            report = compaction.run()
        assert (report.entries, report.leftovers, report.is_complete) == (0, 0, False)
        assert len(names(store)) == 3
        assert left.exists()
        report = store.compact(max_bytes=0, max_age=-1.0)
        assert (report.aged, report.leftovers, report.is_complete) == (3, 1, True)


def test_a_compaction_ends_where_a_writer_adds_as_fast_as_it_removes(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("first/v1"), noise(5000), metadata={})

        def add() -> bool:
            if not names(store):
                store.put(key("next/v1"), noise(5000), metadata={})
            return False

        with compaction_of(store, Goal(0, 1e9), stopped=add) as compaction:
            assert compaction.run().entries == 1
        assert names(store) == {"next/v1#1"}


def test_writers_come_in_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = StoreLimits(busy_timeout=0.0)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        for number in range(120):
            store.put(key(f"g{number}/v1"), b"x", metadata={})
        left = []

        def write(seconds: float) -> None:
            store.touch(key("g0/v1"), metadata={})  # of another connection, which waits for nobody
            left.append(len(names(store)))

        with compaction_of(store, Goal(0, -1.0)) as compaction:
            monkeypatch.setattr("specmux_cache.store.compaction.time.sleep", write)
            compaction.run()
        assert left[:3] == [70, 20, 0]


def test_dry_run_below_the_bound_is_of_nothing(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("apps/v1", "1"), noise(5000), metadata={})
        store.put(key("apps/v1", "2"), noise(5000), metadata={})
        preview = store.compact(dry_run=True)
        assert (preview.entries, preview.leftovers, preview.dry_run) == (0, 0, True)
        assert preview.bytes_after == preview.bytes_before == store.stats().bytes_used


def test_dry_run_counts_an_entry_once_and_in_the_order_of_a_run(tmp_path: Path, clock: Clock) -> None:
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for revision in range(6):
            clock.now += 1
            store.put(key("apps/v1", str(revision)), noise(5000), metadata={})
        clock.now += 31 * DAY
        preview, report = store.compact(dry_run=True), compacted(store)
        assert (preview.obsolete, preview.aged, preview.entries) == (3, 3, 6)
        assert (report.obsolete, report.aged, report.entries) == (3, 3, 6)


def test_dry_run_counts_a_body_when_the_last_entry_with_it_goes(tmp_path: Path, clock: Clock) -> None:
    size = 102_400
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        shared = noise(size)
        for number in range(4):
            clock.now += 1
            store.put(key(f"shared{number}/v1"), shared, metadata={})
        for number in range(3):
            clock.now += 1
            store.put(key(f"own{number}/v1"), noise(size), metadata={})
        needed = store._contents.bytes_needed()
        preview = store.compact(max_bytes=needed - size, dry_run=True)
        freed = preview.bytes_before - preview.bytes_after
        assert preview.unused == 4
        assert size <= freed < size + 4096
        preview = store.compact(max_bytes=needed - size - 8192, dry_run=True)
        assert preview.unused == 5
        assert 2 * size <= preview.bytes_before - preview.bytes_after < 2 * size + 8192
        preview = store.compact(max_bytes=0, dry_run=True)
        assert preview.unused == 7
        assert 4 * size <= preview.bytes_before - preview.bytes_after < 4 * size + 8192
        assert store.compact(max_bytes=needed - size).unused == 4
        assert names(store) == {"own0/v1#1", "own1/v1#1", "own2/v1#1"}


def test_the_reserve_is_filled_again(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        (store.directory / "reserve").unlink()
        store.compact()
        assert (store.directory / "reserve").stat().st_blocks * 512 == store.limits.reserve


def test_a_second_compactor_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        DiskStore.open(tmp_path / "cache") as store,
        hold_lock(store.directory / "compaction.lock", timeout=0) as got,
    ):
        assert got
        monkeypatch.setattr("specmux_cache.store.directory.time.sleep", lambda _: pytest.fail("it waits"))
        assert store.compact(dry_run=True) == CompactionReport(skipped="locked", dry_run=True)


def test_a_put_above_the_high_mark_starts_one_compaction_that_close_waits_for(tmp_path: Path) -> None:
    is_begun, may_go = threading.Event(), threading.Event()

    def now() -> float:
        if threading.current_thread().name.startswith("compact "):
            is_begun.set()
            may_go.wait(60)
        return 1e9

    store = DiskStore.open(tmp_path / "cache", limits=StoreLimits(high_bytes=MIB), clock=now)
    try:
        while store._compactor is None:
            store.put(key(f"g{store.stats().entries}/v1"), noise(100_000), metadata={})
        assert is_begun.wait(60)
        compactor = store._compactor
        assert compactor.daemon
        store._compact_in_background()
        assert store._compactor is compactor
        threading.Timer(0.2, may_go.set).start()
        store.close()
        assert not compactor.is_alive()
        store._compact_in_background()
        assert store._compactor is compactor
    finally:
        may_go.set()
        store.close()


@pytest.mark.parametrize(
    ("passed", "is_due"), [(0, False), (86399, False), (86400, True), (-1, True), (-86401, True)]
)
def test_a_put_compacts_a_day_after_the_last_or_after_a_clock_was_ahead(
    tmp_path: Path, clock: Clock, passed: int, is_due: bool
) -> None:
    DiskStore.open(tmp_path / "cache", clock=clock).close()
    clock.now += passed
    with DiskStore.open(tmp_path / "cache", clock=clock) as store:
        for number in range(2):
            store.put(key(f"g{number}/v1"), b"x", metadata={})
        assert (store._compactor is not None) == is_due


def test_puts_look_once_a_minute_whether_a_compaction_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_note, looks, now = Index.read_note, list[float](), [1e6]

    def note_and_read(self: Index, name: str) -> float | None:
        looks.append(now[0])
        return read_note(self, name)

    with DiskStore.open(tmp_path / "cache") as store:
        monkeypatch.setattr(Index, "read_note", note_and_read)
        monkeypatch.setattr("specmux_cache.store.disk_store.time.monotonic", lambda: now[0])
        for now[0] in (1e6, 1e6 + 59, 1e6 + 60, 1e6 + 61):
            store.put(key("apps/v1"), b"x", metadata={})
        monkeypatch.undo()
    assert looks == [1e6, 1e6 + 60]


def test_a_compaction_in_the_background_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: DiskStore) -> CompactionReport:
        raise StoreBusy("in use", directory="")

    warnings: list[str] = []
    store = DiskStore.open(tmp_path / "cache", warn=warnings.append)
    monkeypatch.setattr(DiskStore, "compact", fail)
    store._compact_quietly()
    assert len(warnings) == 1
    assert "compaction failed" in warnings[0]
    store.close()
    store._compact_quietly()
    assert len(warnings) == 1

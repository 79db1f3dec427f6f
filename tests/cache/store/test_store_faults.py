"""Damage, full and read-only disks, strangers' directories, many processes: real files, real processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from deadline import DEADLINE
from specmux_cache.errors import DiskFull, StoreFull, StoreUnavailable
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key
from specmux_cache.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final = [f"g{number}/v1" for number in range(40)]


def key(group_version: str) -> Key:
    return Key("https://one", "anonymous", group_version, "1", "application/json")


def body(group_version: str) -> bytes:
    return group_version.encode() * 2000


def filled(directory: Path) -> None:
    with DiskStore.open(directory) as store:
        for name in NAMES:
            store.put(key(name), body(name), metadata={"etag": name})


def found_in(directory: Path) -> set[str]:
    """The names whose bodies are there; fails for one that is not what was put."""
    found = set()
    with DiskStore.open(directory) as store:
        for name in NAMES:
            stored = store.get(key(name))
            if stored is not None:
                assert stored.body == body(name)
                assert stored.row.metadata == {"etag": name}
                found.add(name)
        store.check(fix=True)
    with DiskStore.open(directory) as store:
        assert store.check() == ()
        store.put(key("new/v1"), b"new", metadata={})
        assert store.get(key("new/v1")) is not None
    return found


def flip(path: Path, *, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    path.write_bytes(data)


def truncate(path: Path, *, at: float) -> None:
    os.truncate(path, int(path.stat().st_size * at))


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("at", [0.0, 0.3, 0.99])
def test_a_damaged_body_is_a_miss_and_can_be_stored_again(
    tmp_path: Path, damage: Callable[..., None], at: float
) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        digest = store.put(key("a/v1"), body("a/v1"), metadata={})
        damage(tmp_path / "cache" / "bodies" / digest[0] / digest, at=at)
        stored = store.get(key("a/v1"))
        if stored is not None:  # a bit that says nothing of the content
            assert stored.body == body("a/v1")
            return
        assert store.stats().damaged == 1
        assert not (tmp_path / "cache" / "bodies" / digest[0] / digest).exists()
        store.put(key("a/v1"), body("a/v1"), metadata={})
        assert store.get(key("a/v1")) is not None
        assert store.check() == ()


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("at", [0.0, 0.0001, 0.01, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.999])
def test_a_damaged_index_costs_entries_and_nothing_else(
    tmp_path: Path, damage: Callable[..., None], at: float
) -> None:
    filled(tmp_path / "cache")
    damage(tmp_path / "cache" / "cache.db", at=at)
    found_in(tmp_path / "cache")


@pytest.mark.long
def test_no_byte_of_the_first_pages_of_the_index_stops_an_opening(tmp_path: Path) -> None:
    # SQL text of the schema that is no UTF-8 any more, and diskcache's settings, lie there.
    with DiskStore.open(tmp_path / "good") as store:
        store.put(key("a/v1"), body("a/v1"), metadata={})
    good = (tmp_path / "good" / "cache.db").read_bytes()
    set_aside = 0
    for at in range(100, 3 * 4096, 23):
        if good[at] & 0x80:
            continue
        warnings: list[str] = []
        directory = tmp_path / str(at)
        shutil.copytree(tmp_path / "good", directory)
        (directory / "cache.db").write_bytes(good[:at] + bytes([good[at] | 0x80]) + good[at + 1 :])
        with DiskStore.open(directory, warn=warnings.append) as store:
            found = store.get(key("a/v1"))
            assert found is None or found.body == body("a/v1")
            store.put(key("a/v1"), body("a/v1"), metadata={})
            store.check(fix=True)
        with DiskStore.open(directory, warn=warnings.append) as store:
            assert store.get(key("a/v1")) is not None or warnings
            store.put(key("a/v1"), body("a/v1"), metadata={})
            assert store.get(key("a/v1")) is not None
        assert len(warnings) <= 1
        set_aside += len(warnings)
        shutil.rmtree(directory)
    assert set_aside > 10


def test_a_key_of_damaged_bytes_ends_no_walk_and_is_removed(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        for name in NAMES[:3]:
            store.put(key(name), body(name), metadata={})
        # Above U+FFFD, which stands for such a byte where it is shown.
        store._contents.index.database.execute(
            "UPDATE Cache SET key = CAST(CAST(substr(key, 1, 9) AS BLOB) || x'ff' AS TEXT) WHERE key LIKE ?",
            (f"%{NAMES[1]}%",),
        )
        assert {row.key.group_version for row in store.rows()} == {NAMES[0], NAMES[2]}
        assert [problem.kind for problem in store.check(fix=True) if problem.kind == "row"] == ["row"]
        assert store.check() == ()


@pytest.mark.parametrize("at", range(len("specmux-cache ")))
def test_a_damaged_version_file_is_written_anew_where_tag_and_index_are_there(
    tmp_path: Path, at: int
) -> None:
    filled(tmp_path / "cache")
    path = tmp_path / "cache" / "version"
    good = path.read_bytes()
    path.write_bytes(good[:at] + bytes([good[at] ^ 0x04]) + good[at + 1 :])
    assert found_in(tmp_path / "cache") == set(NAMES)
    assert path.read_bytes() == good


@pytest.mark.parametrize("bit", range(7))
def test_a_flipped_bit_of_the_version_is_no_newer_version(tmp_path: Path, bit: int) -> None:
    filled(tmp_path / "cache")
    path = tmp_path / "cache" / "version"
    path.write_text(f"specmux-cache {chr(ord('1') ^ 1 << bit)}\n")
    assert found_in(tmp_path / "cache") == set(NAMES)


def test_every_damaged_byte_of_a_body_in_a_row_is_noticed(tmp_path: Path) -> None:
    small = bytes(range(256)) * 4
    with DiskStore.open(tmp_path / "cache") as store:
        database = store._contents.index.database
        for at in range(0, len(small), 37):
            store.put(key("a/v1"), small, metadata={})
            data = small[:at] + bytes([small[at] ^ 0x10]) + small[at + 1 :]
            database.execute("UPDATE Cache SET filename = ? WHERE filename IS NOT NULL", (data,))
            assert [problem.kind for problem in store.check()] == ["body"]
            assert store.get(key("a/v1")) is None
        for value in (None, b"", "text", 5):
            store.put(key("a/v1"), small, metadata={})
            database.execute("UPDATE Cache SET filename = ? WHERE filename IS NOT NULL", (value,))
            assert store.get(key("a/v1")) is None
        assert store.check() == ()


def test_a_version_file_that_is_gone_is_written_anew_where_tag_and_index_are_there(tmp_path: Path) -> None:
    filled(tmp_path / "cache")
    (tmp_path / "cache" / "version").unlink()
    assert found_in(tmp_path / "cache") == set(NAMES)
    assert (tmp_path / "cache" / "version").exists()


def test_a_put_of_a_body_whose_file_is_damaged_writes_it_again(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        digest = store.put(key("a/v1"), body("a/v1"), metadata={})
        flip(tmp_path / "cache" / "bodies" / digest[0] / digest, at=0.5)
        store.put(key("b/v1"), body("a/v1"), metadata={})
        for name in ("a/v1", "b/v1"):
            stored = store.get(key(name))
            assert stored is not None
            assert stored.body == body("a/v1")


@pytest.mark.parametrize(
    "name", ["version", "cache.db", "cache.db-wal", "cache.db-shm", "lock", "compaction.lock", "reserve",
             "partition.key", "CACHEDIR.TAG", "body"],
)  # fmt: skip
def test_a_named_pipe_in_place_of_a_file_holds_nobody_up(tmp_path: Path, name: str) -> None:
    directory, warnings = tmp_path / "cache", list[str]()
    options: dict[str, Any] = {"limits": StoreLimits(), "clock": time.time, "warn": warnings.append}
    store, _, _ = open_store(directory, **options)
    digest = store.put(key("a/v1"), body("a/v1"), metadata={})
    store.close()
    path = directory / "bodies" / digest[0] / digest if name == "body" else directory / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    store, _, _ = open_store(directory, **options)
    found = store.get(key("a/v1"))
    assert found is None or found.body == body("a/v1")
    store.put(key("a/v1"), body("a/v1"), metadata={})
    assert store.get(key("a/v1")) is not None
    if isinstance(store, DiskStore):
        store.compact()
        store.check(fix=True)
    else:
        assert len(warnings) == 1
        assert "not a regular file" in warnings[0]
    store.close()


WITH_LOG = """
import os, pathlib, sys
sys.path[:0] = [sys.argv[2], str(pathlib.Path(sys.argv[2]).parents[1])]
from test_store_faults import NAMES, body, key
from specmux_cache.store.disk_store import DiskStore
store = DiskStore.open(pathlib.Path(sys.argv[1]))
for name in NAMES:
    store.put(key(name), body(name), metadata={"etag": name})
os._exit(0)
"""


@pytest.fixture(scope="module")
def with_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A process that ends without closing leaves the log as it is."""
    directory = tmp_path_factory.mktemp("with_log") / "cache"
    subprocess.run([sys.executable, "-c", WITH_LOG, directory, Path(__file__).parent], check=True)
    return directory


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("at", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_damaged_log_costs_the_last_writes_and_nothing_else(
    with_log: Path, tmp_path: Path, damage: Callable[..., None], at: float
) -> None:
    directory = shutil.copytree(with_log, tmp_path / "cache")
    log = directory / "cache.db-wal"
    assert log.stat().st_size > 100_000
    damage(log, at=at)
    found_in(directory)


CUT_MAP = """
import os, pathlib, sys
sys.path[:0] = [sys.argv[2], str(pathlib.Path(sys.argv[2]).parents[1])]
from test_store_faults import NAMES, body, key
from specmux_cache.store.disk_store import DiskStore
map = pathlib.Path(sys.argv[1]) / "cache.db-shm"
for use in ("read", "write", "compact", "close"):
    with DiskStore.open(pathlib.Path(sys.argv[1])) as store:
        for name in NAMES:
            store.put(key(name), body(name), metadata={"etag": name})
        assert map.stat().st_size >= 32768
        os.truncate(map, int(sys.argv[3]))
        if use == "read":
            for name in NAMES:
                assert store.get(key(name)).body == body(name), name
        if use == "write":
            store.put(key("new/v1"), b"new", metadata={})
            assert store.get(key("new/v1")).body == b"new"
        if use == "compact":
            store.compact()
            assert not store.check()
"""


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 32767])
def test_a_cut_map_of_the_log_ends_no_process_and_loses_nothing(tmp_path: Path, size: int) -> None:
    arguments = [tmp_path / "cache", Path(__file__).parent, str(size)]
    found = subprocess.run(
        [sys.executable, "-c", CUT_MAP, *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    found_in(tmp_path / "cache")


def test_an_index_damaged_under_an_open_store_is_set_aside(tmp_path: Path) -> None:
    warnings: list[str] = []
    filled(tmp_path / "cache")
    with DiskStore.open(tmp_path / "cache", warn=warnings.append) as store:
        # By another process: here, closing the file would drop SQLite's locks.
        script = "import sys; open(sys.argv[1], 'r+b').write(b'not a database' * 1000)"
        subprocess.run([sys.executable, "-c", script, tmp_path / "cache" / "cache.db"], check=True)
        for name in NAMES:
            stored = store.get(key(name))
            assert stored is None or stored.body == body(name)
        store.put(key("new/v1"), b"new", metadata={})
        assert store.get(key("new/v1")) is not None
    found_in(tmp_path / "cache")


def test_bodies_of_a_lost_index_count_and_go(tmp_path: Path) -> None:
    warnings: list[str] = []
    filled(tmp_path / "cache")
    (tmp_path / "cache" / "cache.db").write_bytes(b"not a database" * 1000)
    with DiskStore.open(tmp_path / "cache", warn=warnings.append) as store:
        assert len(warnings) == 1
        assert "damaged" in warnings[0]
        assert (tmp_path / "cache" / "damaged.db").exists()
        assert store.stats().bytes_used >= len(NAMES) * 4096
        assert store.compact().leftovers == len(NAMES)
        assert not list((tmp_path / "cache" / "bodies").rglob("*"))


def test_two_processes_go_on_when_one_sets_the_index_aside(tmp_path: Path) -> None:
    filled(tmp_path / "cache")
    with DiskStore.open(tmp_path / "cache") as one, DiskStore.open(tmp_path / "cache") as two:
        one._set_aside(one._contents)
        one.put(key("new/v1"), b"new", metadata={})
        stored = two.get(key("new/v1"))
        assert stored is not None
        assert stored.body == b"new"
        assert two.check() == ()


@pytest.mark.parametrize(
    "what", ["a symlink", "a file", "someone's documents", "of a newer version", "not of specmux"]
)
def test_a_directory_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, what: str) -> None:
    directory, aside = tmp_path / "cache", tmp_path / "aside"
    match what:
        case "a symlink":
            filled(aside)
            directory.symlink_to(aside)
        case "a file":
            directory.write_text("x")
        case "someone's documents":
            directory.mkdir()
            (directory / "thesis.txt").write_text("x")
        case "of a newer version":
            filled(directory)
            (directory / "version").write_text("specmux-cache 2\n")
            with contextlib.closing(sqlite3.connect(directory / "cache.db")) as index:
                index.execute("PRAGMA user_version = 2")
        case _:
            directory.mkdir()
            (directory / "version").write_text("something 1\n")
    before = sorted((path.name, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    with pytest.raises(StoreUnavailable):
        DiskStore.open(directory)
    assert sorted((path.name, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["bodies", "tmp", "cache.db"])
def test_a_symlink_inside_is_refused(tmp_path: Path, name: str) -> None:
    filled(tmp_path / "cache")
    inside = tmp_path / "cache" / name
    inside.rename(tmp_path / "aside") if inside.exists() else (tmp_path / "aside").mkdir()
    inside.symlink_to(tmp_path / "aside")
    with pytest.raises(StoreUnavailable, match="symlink"):
        DiskStore.open(tmp_path / "cache")


OPENER = """
import pathlib, sys
from specmux_cache.store.keys import Key
from specmux_cache.store.disk_store import DiskStore
sys.stdin.readline()
with DiskStore.open(pathlib.Path(sys.argv[1])) as store:
    for turn in range(10):
        own, shared = Key("s", "p", sys.argv[2], str(turn), "m"), Key("s", "p", "shared", str(turn), "m")
        store.put(own, sys.argv[2].encode() * 1000, metadata={})
        store.put(shared, b"shared" * 1000 + bytes([turn]), metadata={})
        assert store.get(own).body == sys.argv[2].encode() * 1000
        assert store.get(shared).body == b"shared" * 1000 + bytes([turn])
"""


@pytest.mark.long
def test_sixteen_processes_may_open_a_new_cache_at_once(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, tmp_path / "cache", str(number)], stdin=subprocess.PIPE
        )
        for number in range(16)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait(timeout=DEADLINE) for child in children] == [0] * 16
    with DiskStore.open(tmp_path / "cache") as store:
        assert store.stats().entries == 16 * 10 + 10
        assert store.check() == ()


COMPACTOR = """
import pathlib, sys
from specmux_cache.store.disk_store import DiskStore
with DiskStore.open(pathlib.Path(sys.argv[1])) as store:
    sys.stdin.readline()
    report = store.compact(max_bytes=0)
    print(report.skipped or report.entries)
"""


def test_two_compactors_at_once_do_the_work_once(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    with DiskStore.open(directory) as store, store._contents.index.database.transaction():
        for number in range(3000):
            store.put(key(f"g{number}/v1"), b"%d" % number, metadata={})
    children = [
        subprocess.Popen(
            [sys.executable, "-c", COMPACTOR, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    time.sleep(1)  # both are open; the answer does not depend on it
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [child.communicate(timeout=DEADLINE)[0].strip() for child in children]
    # Where the machine ran them one after the other, the second found nothing.
    assert sorted(answers) in (["3000", "locked"], ["0", "3000"])


def in_namespace(script: str, *arguments: str | Path, setup: str) -> subprocess.CompletedProcess[str]:
    """Run it where ``setup`` may mount; skips where the machine does not allow that."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace to be had")
    command = ["unshare", "-m", "sh", "-e", "-c", f'{setup}\nexec "$0" -c "$@"', sys.executable, script]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=100
    )


def mounted_read_only(directory: Path) -> str:
    return f"mount --bind {directory} {directory}; mount -o remount,ro,bind {directory}"


NOT_THERE = """
import pathlib, sys
from specmux_cache.errors import StoreUnavailable
from specmux_cache.store.disk_store import DiskStore
try:
    DiskStore.open(pathlib.Path(sys.argv[1]))
except StoreUnavailable as error:
    print(error.reason)
"""


def test_a_store_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    answer = in_namespace(NOT_THERE, tmp_path / "cache", setup=mounted_read_only(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert "ead-only" in answer.stdout


READ_ONLY = """
import pathlib, sys, time
sys.path[:0] = [sys.argv[2], str(pathlib.Path(sys.argv[2]).parents[1])]
from test_store_faults import NAMES, body, key
from specmux_cache.errors import StoreReadOnly
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.opening import open_store
directory, later = pathlib.Path(sys.argv[1]), lambda: time.time() + 1000
with DiskStore.open(directory, clock=later) as store:
    assert store.is_read_only
    for name in NAMES:
        assert store.get(key(name)).body == body(name)
    assert len(list(store.rows())) == store.stats().entries == len(NAMES)
    assert store.check() == ()
    for change in (
        lambda: store.put(key("new/v1"), b"new", metadata={}),
        lambda: store.touch(key(NAMES[0]), metadata={}),
        lambda: store.delete(key(NAMES[0])),
        lambda: store.compact(),
        lambda: store.clear(),
        lambda: store.check(fix=True),
    ):
        try:
            change()
            print("changed")
        except StoreReadOnly:
            pass
client, flights, secret = open_store(directory, limits=StoreLimits(), clock=later, warn=print)
assert secret == (directory / "partition.key").read_bytes() and flights is None
assert client.get(key(NAMES[0])).body == body(NAMES[0])
client.put(key("new/v1"), b"new", metadata={})
assert client.get(key("new/v1")).body == b"new"
assert client.touch(key(NAMES[1]), metadata={"etag": "2"})
assert client.get(key(NAMES[1])).row.metadata == {"etag": "2"}
assert client.delete(key(NAMES[2])) and client.get(key(NAMES[2])) is None
assert len(list(client.rows())) == len(NAMES)
client.close()
"""


@pytest.mark.parametrize("log", ["no log", "a log"])
def test_a_full_store_on_a_read_only_disk_is_read(tmp_path: Path, log: str) -> None:
    options: dict[str, Any] = {"limits": StoreLimits(), "clock": time.time, "warn": print}
    open_store(tmp_path / "cache", **options)[0].close()
    filled(tmp_path / "cache")
    if log == "a log":
        # Of a process that ended without closing: what it says is in the file already, or is not seen.
        (tmp_path / "cache" / "cache.db-wal").write_bytes(b"")
    folder = Path(__file__).parent
    answer = in_namespace(READ_ONLY, tmp_path / "cache", folder, setup=mounted_read_only(tmp_path / "cache"))
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stderr
    assert found_in(tmp_path / "cache") == set(NAMES)


FULL = """
import os, pathlib, sys
from specmux_cache.errors import StoreFull
from specmux_cache.store.keys import Key
from specmux_cache.store.disk_store import DiskStore, StoreLimits
directory = pathlib.Path(sys.argv[1])
key = lambda number: Key("s", "p", f"g{number}", "h", "m")
bodies = {number: os.urandom(20_000) for number in range(100)}
limits = StoreLimits(reserve_bytes=64 * 1024)
with DiskStore.open(directory, limits=limits) as store:
    refused = 0
    for number, body in bodies.items():
        try:
            store.put(key(number), body, metadata={})
        except StoreFull:
            refused += 1
    assert 50 < refused < 100, refused
    filler = os.open(directory.parent / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(filler, b"x" * 4096):
            pass
    except OSError:
        pass
    assert os.statvfs(directory).f_bavail == 0
    held = [number for number in bodies if (found := store.get(key(number))) is not None]
    assert held and all(store.get(key(number)).body == bodies[number] for number in held)
# A process that finds the disk full from the start.
with DiskStore.open(directory, limits=limits) as store:
    assert store.get(key(held[0])).body == bodies[held[0]]
    assert store.delete(key(held[0]))
    assert store.get(key(held[0])) is None
    report = store.compact(max_bytes=0)
    assert report.unused >= 5, report
    assert report.bytes_after < report.bytes_before - 5 * 20_000, report
    assert store.check() == ()
    store.put(key(0), bodies[0], metadata={})
    assert store.get(key(0)).body == bodies[0]
    assert store.clear() == 1
    assert list(store.rows()) == []
print("ok")
"""


def test_a_full_disk_refuses_bodies_and_compaction_still_works(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    answer = in_namespace(FULL, mount / "cache", setup=f"mount -t tmpfs -o size=1m none {mount}")
    assert (answer.returncode, answer.stdout) == (0, "ok\n"), answer.stderr


def test_a_disk_that_takes_no_more_refuses_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("a/v1"), body("a/v1"), metadata={})
        before = store.stats().bytes_used
        with monkeypatch.context() as patched:
            # A quota at the file layer, for machines that allow no mount.
            patched.setattr("specmux_cache.store.bodies.os.write", full)
            with pytest.raises(DiskFull):
                store.put(key("b/v1"), body("b/v1"), metadata={})
            stored = store.get(key("a/v1"))
            assert stored is not None
        assert store.check() == ()
        assert store.stats().bytes_used < before + 200_000
        assert store.stats().bodies == 1
        store.put(key("b/v1"), body("b/v1"), metadata={})


def test_a_store_without_room_refuses_within_its_time(tmp_path: Path) -> None:
    limits = StoreLimits(high_bytes=50_000, room_timeout=0.1)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        with pytest.raises(StoreFull, match="no room"):
            store.put(key("a/v1"), os.urandom(1000), metadata={})
        assert store.get(key("a/v1")) is None


def test_too_many_open_files_costs_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> int:
        raise OSError(24, "Too many open files")

    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("a/v1"), body("a/v1"), metadata={})
        with monkeypatch.context() as patched:
            # For this call alone: the process needs its descriptors for the rest.
            patched.setattr("specmux_cache.store.bodies.os.open", exhausted)
            with pytest.raises(StoreUnavailable, match="Too many"):
                store.get(key("a/v1"))
        assert store.get(key("a/v1")) is not None


def test_a_damaged_index_set_aside_goes_before_any_entry(tmp_path: Path) -> None:
    filled(tmp_path / "cache")
    aside = tmp_path / "cache" / "damaged.db"
    aside.write_bytes(b"x" * 10_000_000)
    with DiskStore.open(tmp_path / "cache") as store:
        store.compact()
        assert aside.exists()
        assert store.compact(max_bytes=5_000_000).entries == 0
        assert not aside.exists()
        assert store.stats().entries == len(NAMES)

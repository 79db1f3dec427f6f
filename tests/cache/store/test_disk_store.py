"""The store as its users see it."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deadline import DEADLINE
from running.open_files import needs_proc, open_in
from sampling import examples
from specmux_cache.errors import DiskFull, StoreFull, StoreReadOnly, StoreUnavailable
from specmux_cache.store import contents
from specmux_cache.store.contents import Contents
from specmux_cache.store.directory import hold_lock
from specmux_cache.store.disk_store import DiskStore, StoredEntry, StoreLimits
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JSON = "application/json"


def key(
    group_version: str = "apps/v1", hash_: str = "A1", *, server: str = "https://one", media: str = JSON
) -> Key:
    return Key(server, "anonymous", group_version, hash_, media)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    with DiskStore.open(tmp_path / "cache") as opened:
        yield opened


def body_files(store: DiskStore) -> list[Path]:
    return sorted(path for path in (store.directory / "bodies").rglob("*") if path.is_file())


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)
keys = st.builds(Key, *[st.text(max_size=20)] * 5)


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=keys,
    body=st.binary(max_size=2000),
    metadata=st.dictionaries(st.text(), scalars),
    compress=st.booleans(),
)
def test_what_was_put_is_what_get_returns(
    store: DiskStore, key: Key, body: bytes, metadata: dict[str, str], compress: bool
) -> None:
    digest = store.put(key, body, metadata=metadata, compress=compress)
    found = store.get(key)
    assert found is not None
    assert found.body == body
    assert (found.row.key, found.row.digest, found.row.size) == (key, digest, len(body))
    assert found.row.metadata == metadata
    assert key in {row.key for row in store.rows(key.server, key.partition)}


def test_get_of_a_key_that_was_never_put_is_none(store: DiskStore) -> None:
    assert store.get(key()) is None
    assert (store.stats().hits, store.stats().misses) == (0, 1)


def test_put_again_replaces_and_removes_the_body_no_one_names(store: DiskStore) -> None:
    store.put(key(), b"first" * 1000, metadata={})
    store.put(key(), b"second" * 1000, metadata={"etag": '"2"'})
    found = store.get(key())
    assert found is not None
    assert (found.body, dict(found.row.metadata)) == (b"second" * 1000, {"etag": '"2"'})
    assert [path.name for path in body_files(store)] == [found.row.digest]


def test_one_body_under_many_keys_is_stored_once_and_goes_with_the_last(store: DiskStore) -> None:
    many = [key(hash_=str(n), server=f"https://{n}") for n in range(5)]
    for each in many:
        store.put(each, b"the same" * 1000, metadata={})
    [path] = body_files(store)
    for each in many[:-1]:
        assert store.delete(each)
        assert path.exists()
    assert store.delete(many[-1])
    assert not path.exists()
    assert not store.delete(many[-1])


def test_put_of_a_body_that_is_there_does_not_write_it(store: DiskStore) -> None:
    store.put(key(hash_="1"), b"x" * 100_000, metadata={})
    [path] = body_files(store)
    before = path.stat()
    store.put(key(hash_="2"), b"x" * 100_000, metadata={})
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_put_of_a_body_whose_file_was_deleted_writes_it_again(store: DiskStore) -> None:
    store.put(key(hash_="1"), b"x" * 5000, metadata={})
    body_files(store)[0].unlink()
    store.put(key(hash_="2"), b"x" * 5000, metadata={})
    for hash_ in "12":
        found = store.get(key(hash_=hash_))
        assert found is not None
        assert found.body == b"x" * 5000


@pytest.mark.parametrize("size", [0, 1, 127, 4096, 4097, 20_000])
def test_a_small_body_lies_in_its_row_and_a_larger_one_in_a_file(store: DiskStore, size: int) -> None:
    store.put(key(), b"x" * size, metadata={})
    assert len(body_files(store)) == (size > 4096)
    assert store.touch(key(), metadata={"etag": "1"})
    found = store.get(key())
    assert found is not None
    assert (found.body, found.row.size) == (b"x" * size, size)
    assert store.check() == ()
    assert store.delete(key())
    assert store.get(key()) is None
    assert body_files(store) == []
    assert store.check() == ()


def test_a_document_that_shrinks_and_grows_keeps_one_body(store: DiskStore) -> None:
    for size in (5000, 100, 6000, 6000, 200, 200):
        store.put(key(), b"x" * size, metadata={})
        found = store.get(key())
        assert found is not None
        assert found.body == b"x" * size
        assert len(body_files(store)) == (size > 4096)
        assert store.check() == ()


def test_small_bodies_that_earlier_versions_kept_in_files_are_read_and_replaced(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(contents, "INLINE_BYTES", -1)
        for hash_ in "12":
            store.put(key(hash_=hash_), b"x" * 1000, metadata={})
    assert len(body_files(store)) == 1
    for hash_ in "12":
        found = store.get(key(hash_=hash_))
        assert found is not None
        assert found.body == b"x" * 1000
    store.put(key(hash_="1"), b"x" * 1000, metadata={})
    assert len(body_files(store)) == 1
    store.put(key(hash_="2"), b"x" * 1000, metadata={})
    assert body_files(store) == []
    assert store.check() == ()


def test_touch_renews_times_and_merges_metadata(tmp_path: Path) -> None:
    now = [1000.0]
    with DiskStore.open(tmp_path / "cache", clock=lambda: now[0]) as store:
        store.put(key(), b"body", metadata={"etag": "1", "kept": True})
        now[0] = 5000.0
        assert store.touch(key(), metadata={"etag": "2"})
        found = store.get(key())
        assert found is not None
        assert (found.row.stored_at, found.row.touched_at) == (1000.0, 5000.0)
        assert dict(found.row.metadata) == {"etag": "2", "kept": True}
        assert not store.touch(key("other/v1"), metadata={})


def test_rows_are_those_with_the_prefix_in_order(store: DiskStore) -> None:
    for server in ("https://b", "https://a", "https://a/"):
        for group_version in ("apps/v1", "apps/v10", "batch/v1"):
            store.put(key(group_version, server=server), b"x", metadata={})
    assert len(list(store.rows())) == 9
    assert [row.key.group_version for row in store.rows("https://a")] == ["apps/v1", "apps/v10", "batch/v1"]
    assert [row.key for row in store.rows("https://b", "anonymous", "apps/v1")] == [key(server="https://b")]
    assert list(store.rows("https://")) == []


def test_rows_of_more_than_a_page_are_all_there(store: DiskStore) -> None:
    for number in range(600):
        store.put(key(f"g{number}/v1"), b"same", metadata={})
    assert len(list(store.rows())) == 600
    assert store.clear() == 600
    assert list(store.rows()) == []
    assert body_files(store) == []


def test_the_revision_used_last_is_the_current_one(store: DiskStore) -> None:
    for hash_ in ("1", "2", "3"):
        store.put(key(hash_=hash_), hash_.encode(), metadata={})
    assert {row.key.hash: row.superseded for row in store.rows()} == {"1": True, "2": True, "3": False}
    store.touch(key(hash_="1"), metadata={})
    assert {row.key.hash: row.superseded for row in store.rows()} == {"1": False, "2": True, "3": True}


def test_another_media_type_is_another_document(store: DiskStore) -> None:
    store.put(key(hash_="1"), b"json", metadata={})
    store.put(key(hash_="2", media="application/cbor"), b"cbor", metadata={})
    assert not any(row.superseded for row in store.rows())


def test_contents_survive_a_reopen(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key(), b"kept", metadata={"a": 1})
    with DiskStore.open(tmp_path / "cache") as store:
        found = store.get(key())
        assert found is not None
        assert found.body == b"kept"


def test_a_closed_store_refuses(store: DiskStore) -> None:
    store.close()
    store.close()
    for call in (lambda: store.get(key()), store.compact, store.stats, store.clear, store.check):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()


def test_bodies_above_the_limits_are_refused(tmp_path: Path) -> None:
    limits = StoreLimits(max_body_bytes=1000, high_bytes=1024 * 1024)
    with DiskStore.open(tmp_path / "cache", limits=limits) as store:
        with pytest.raises(StoreFull):
            store.put(key(), b"x" * 1001, metadata={})
        assert store.get(key()) is None
        store.put(key(), b"x" * 1000, metadata={})


@pytest.mark.parametrize("metadata", [{"a": "x" * 20_000}, {"a": float("nan")}])
def test_metadata_that_is_too_large_or_not_json_is_refused(
    store: DiskStore, metadata: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"metadata|JSON"):
        store.put(key(), b"x", metadata=metadata)
    assert list(store.rows()) == []


def test_everything_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with DiskStore.open(tmp_path / "cache") as store:
            for part in (b"x", b"y"):
                store.put(key(), part * 10_000, metadata={})
            modes = {
                path.relative_to(tmp_path): stat.S_IMODE(path.lstat().st_mode)
                for path in (store.directory, *store.directory.rglob("*"))
            }
    finally:
        os.umask(before)
    for path, mode in modes.items():
        assert mode == (0o700 if (tmp_path / path).is_dir() else 0o600), path


def test_the_directory_says_that_it_is_a_cache(store: DiskStore) -> None:
    assert (
        (store.directory / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )
    assert (store.directory / "version").read_text() == "specmux-cache 1\n"


def test_nothing_on_disk_is_a_pickle(store: DiskStore) -> None:
    store.put(key(), b"x" * 1000, metadata={"a": 1})
    script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
    script += "'SELECT COUNT(*) FROM Cache WHERE raw != 1 OR mode != 1 OR typeof(filename) != ?', ['blob']"
    script += ").fetchone()[0])"
    answer = subprocess.run(
        [sys.executable, "-c", script, store.directory / "cache.db"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "0\n"


def test_threads_share_a_store(store: DiskStore) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                body = f"{number} {turn}".encode() * 50
                store.put(key(f"g{number}/v1", str(turn)), body, metadata={})
                found = store.get(key(f"g{number}/v1", str(turn)))
                assert found is not None
                assert found.body == body
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test's own thread has to raise it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.check() == ()


def test_two_stores_of_one_directory_see_each_other(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as one, DiskStore.open(tmp_path / "cache") as two:
        one.put(key(), b"from one", metadata={})
        found = two.get(key())
        assert found is not None
        assert found.body == b"from one"


def test_a_directory_deleted_under_the_store_starts_again(store: DiskStore) -> None:
    store.put(key(), b"x", metadata={})
    subprocess.run(["rm", "-r", store.directory], check=True)
    assert store.get(key()) is None
    store.put(key(), b"y", metadata={})
    found = store.get(key())
    assert found is not None
    assert found.body == b"y"


FORK = """
import os, pathlib, sys
from specmux_cache.store.keys import Key
from specmux_cache.store.disk_store import DiskStore
key = lambda n: Key("s", "p", n, "h", "m")
with DiskStore.open(pathlib.Path(sys.argv[1])) as store:
    store.put(key("parent"), b"parent", metadata={})
    child = os.fork()
    if not child:
        store.put(key("child"), store.get(key("parent")).body + b" and child", metadata={})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.get(key("child")).body == b"parent and child"
    assert store.check() == ()
"""


def test_a_forked_child_may_use_the_store_it_inherits(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, tmp_path / "cache"], check=True, timeout=DEADLINE
    )


@pytest.mark.parametrize("tag", [None, "file 0", "", 7, b"\xff"])
def test_a_body_is_found_whatever_the_index_says_of_its_file(store: DiskStore, tag: object) -> None:
    store.put(key(), b"{}" * 1000, metadata={})
    database = store._contents.index.database
    database.execute("UPDATE Cache SET tag = ? WHERE key LIKE 'body %'", (tag,))
    found = store.get(key())
    assert found is not None
    assert found.body == b"{}" * 1000
    assert store.check() == ()


def test_a_body_with_the_bytes_of_another_ones_file_goes_with_its_entry(store: DiskStore) -> None:
    store.put(key("a/v1"), random.Random(1).randbytes(10_000).hex().encode(), metadata={})
    [file] = body_files(store)
    store.put(key("b/v1"), file.read_bytes(), metadata={}, compress=False)
    assert len(body_files(store)) == 2
    assert store.delete(key("b/v1"))
    assert body_files(store) == [file]
    assert store.get(key("a/v1")) is not None
    assert store.check() == ()


def test_statistics_count_what_there_is_and_what_happened(store: DiskStore) -> None:
    for hash_ in "123":
        store.put(key(hash_=hash_), b"x" * 5000, metadata={})
    for _ in range(2):
        assert store.get(key(hash_="1")) is not None
    assert store.get(key("other/v1")) is None
    found = store.stats()
    assert (found.entries, found.superseded, found.bodies) == (3, 2, 1)
    assert (found.hits, found.misses, found.damaged) == (2, 1, 0)
    assert found.high_bytes == store.limits.high_bytes


def test_what_was_damaged_is_counted_over_a_new_index(store: DiskStore) -> None:
    for index in range(2):
        store.put(key(), b"x" * 5000, metadata={})
        body_files(store)[0].unlink()
        assert store.get(key()) is None
        assert store.stats().damaged == index + 1
        store._set_aside(store._contents)
        assert store.stats().damaged == index + 1


@pytest.mark.parametrize(("age", "recorded"), [(59, 0), (60, 60), (-1, -1)])
def test_a_use_is_recorded_once_a_minute_and_after_a_clock_was_ahead(
    tmp_path: Path, age: int, recorded: int
) -> None:
    now = [1000.0]
    with DiskStore.open(tmp_path / "cache", clock=lambda: now[0]) as store:
        store.put(key(), b"x", metadata={})
        now[0] += age
        for _ in range(2):
            store.get(key())
        assert [row.accessed_at for row in store.rows()] == [1000.0 + recorded]


def test_the_store_on_disk_of_a_store_on_disk_is_itself(store: DiskStore) -> None:
    assert store.disk is store


@needs_proc
def test_nothing_is_held_open_after_the_end(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key(), b"x" * 5000, metadata={})
        assert open_in(tmp_path) != set()
    assert open_in(tmp_path) == set()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.get(key())


@needs_proc
def test_an_index_that_was_replaced_is_not_held_open(store: DiskStore) -> None:
    store.put(key(), b"x", metadata={})
    shutil.rmtree(store.directory)
    assert store.get(key()) is None
    assert {name for name in open_in(store.directory) if name.endswith("(deleted)")} == set()


@needs_proc
def test_nothing_is_held_open_by_an_opening_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Contents) -> None:
        raise StoreFull("no room", directory="")

    monkeypatch.setattr(Contents, "adopt", fail)
    with pytest.raises(StoreUnavailable, match="no room") as refused:
        DiskStore.open(tmp_path / "cache")
    assert refused.tb is not None  # keeps all that was under way alive
    assert open_in(tmp_path) == set()


def test_an_opening_beside_one_that_does_not_end_is_refused(store: DiskStore) -> None:
    with hold_lock(store.directory / "lock", timeout=0) as got:
        assert got
        with pytest.raises(StoreUnavailable, match="another process is opening it"):
            DiskStore.open(store.directory, limits=StoreLimits(busy_timeout=0.0))


def test_a_full_disk_is_opened_with_the_reserve(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_full(directory: Path, given: StoreLimits) -> Contents:
        if (directory / "reserve").exists():
            raise DiskFull("full", directory=str(directory))
        return Contents(directory, given)

    with monkeypatch.context() as full:
        full.setattr("specmux_cache.store.disk_store.Contents", open_full)
        DiskStore.open(store.directory).close()
    assert (store.directory / "reserve").stat().st_size == store.limits.reserve

    def refuse(*_: object) -> Contents:
        raise DiskFull("full", directory="")

    monkeypatch.setattr("specmux_cache.store.disk_store.Contents", refuse)
    with pytest.raises(StoreUnavailable, match="full"):
        DiskStore.open(store.directory)


def test_a_disk_that_its_log_fills_is_tried_again_without_the_log(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.directory / "cache.db-wal"
    load, sizes = Contents.load, list[int]()

    def load_with_room(self: Contents, key: Key) -> StoredEntry | None:
        sizes.append(log.stat().st_size)
        if sizes[-1]:
            raise DiskFull("full", directory="")
        return load(self, key)

    store.put(key(), b"x", metadata={})
    monkeypatch.setattr(Contents, "load", load_with_room)
    assert store.get(key()) is not None
    assert len(sizes) == 2


def test_an_index_that_another_thread_replaced_is_read_anew(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, calls = Contents.load, list[Contents]()

    def replace_and_load(self: Contents, key: Key) -> StoredEntry | None:
        calls.append(self)
        if len(calls) == 1:
            shutil.rmtree(store.directory)
            store.stats()  # notices
        return load(self, key)

    store.put(key(), b"x", metadata={})
    monkeypatch.setattr(Contents, "load", replace_and_load)
    assert store.get(key()) is None
    assert len(set(calls)) == 2


def test_log_and_map_of_an_index_set_aside_are_not_those_of_the_next(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as one, DiskStore.open(tmp_path / "cache") as two:
        one.put(key(), b"x", metadata={})
        names = ("cache.db", "cache.db-wal", "cache.db-shm")
        before = [(one.directory / name).stat().st_ino for name in names]
        one._set_aside(one._contents)
        one.put(key("new/v1"), b"x", metadata={})
        after = [(one.directory / name).stat().st_ino for name in names]
        assert not set(before) & set(after)
        assert (one.directory / "damaged.db").stat().st_ino == before[0]
        assert [row.key for row in two.rows()] == [key("new/v1")]


@pytest.fixture
def read_only(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[DiskStore]:
    """A store with one entry that cannot be written to: what the system says of it is put in."""
    store.put(key(), b"x" * 5000, metadata={"etag": "1"})
    store.close()
    monkeypatch.setattr("specmux_cache.store.directory.os.access", lambda path, mode: False)
    with DiskStore.open(store.directory, clock=lambda: 4e9) as opened:
        yield opened


def test_a_store_that_is_only_read_changes_nothing(read_only: DiskStore) -> None:
    before = {path: path.lstat().st_mtime_ns for path in read_only.directory.rglob("*")}
    assert read_only.is_read_only
    found = read_only.get(key())
    assert found is not None
    assert found.body == b"x" * 5000
    assert read_only.check() == ()
    for change in (
        lambda: read_only.put(key("new/v1"), b"new", metadata={}),
        lambda: read_only.touch(key(), metadata={}),
        lambda: read_only.delete(key()),
        read_only.compact,
        read_only.clear,
        lambda: read_only.check(fix=True),
    ):
        with pytest.raises(StoreReadOnly, match="cannot be written to"):
            change()
    read_only.close()
    assert {path: path.lstat().st_mtime_ns for path in read_only.directory.rglob("*")} == before


def test_a_damaged_entry_of_a_store_that_is_only_read_is_a_miss(read_only: DiskStore) -> None:
    [path] = body_files(read_only)
    path.write_bytes(b"damaged")
    assert read_only.get(key()) is None
    assert path.exists()
    assert len(list(read_only.rows())) == 1


def test_a_damaged_index_of_a_store_that_is_only_read_stays(read_only: DiskStore) -> None:
    index = read_only.directory / "cache.db"
    index.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnavailable):
        read_only.stats()
    assert index.exists()
    assert not (read_only.directory / "damaged.db").exists()


def test_a_link_to_a_store_that_is_only_read_is_refused(read_only: DiskStore) -> None:
    link = read_only.directory.with_name("link")
    link.symlink_to(read_only.directory)
    with pytest.raises(StoreUnavailable, match="symlink"):
        DiskStore.open(link)


@pytest.mark.parametrize(
    "values",
    [{"low_ratio": 0.0}, {"low_ratio": 1.01}, {"high_bytes": -1}, {"max_age": -0.5}, {"keep_superseded": -1}],
)
def test_limits_that_bound_nothing_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"low_ratio|negative"):
        StoreLimits(**values)


def test_limits_at_their_ends_are_limits() -> None:
    limits = StoreLimits(low_ratio=1.0, high_bytes=1600, max_age=0.0, keep_superseded=0)
    assert (limits.low_bytes, limits.reserve) == (1600, 100)
    assert StoreLimits(low_ratio=0.01, reserve_bytes=7).reserve == 7

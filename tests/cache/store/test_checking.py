"""What a check names, and what it repairs: everything that is wrong, and nothing else."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def key(group_version: str) -> Key:
    return Key("https://one", "anonymous", group_version, "1", "application/json")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    with DiskStore.open(tmp_path / "cache") as opened:
        for name in ("a/v1", "b/v1", "c/v1", "d/v1"):
            opened.put(key(name), name.encode() * 2000, metadata={})
        yield opened


def execute(store: DiskStore, statement: str, *values: object) -> None:
    store._contents.index.database.execute(statement, values)


def assert_named_and_fixed(store: DiskStore, *kinds: str, entries: int) -> None:
    """The first two do not change what the next finds."""
    before = store.stats().entries
    for fix in (False, False, True):
        assert store.stats().entries == before
        found = store.check(fix=fix)
        assert [(problem.kind, problem.is_fixed) for problem in found] == [(kind, fix) for kind in kinds]
    assert store.check() == ()
    assert store.stats().entries == entries


def test_bodies_that_are_missing_or_damaged_are_named_wherever_they_are(store: DiskStore) -> None:
    digests = [row.digest for row in store.rows()]
    shelf = store.directory / "bodies"
    (shelf / digests[1][0] / digests[1]).unlink()
    (shelf / digests[3][0] / digests[3]).write_bytes(b"damaged")
    assert_named_and_fixed(store, "body", "body", entries=2)
    assert {row.key.group_version for row in store.rows()} == {"a/v1", "c/v1"}


def test_rows_that_were_changed_are_named(store: DiskStore) -> None:
    execute(store, "UPDATE Cache SET value = value || ' ' WHERE key LIKE '%b/v1%'")
    execute(store, "UPDATE Cache SET value = 'x' WHERE key LIKE '%d/v1%'")
    # The bodies of rows that go, go with them.
    assert_named_and_fixed(store, "row", "row", entries=2)
    assert store.stats().bodies == 2


def test_rows_of_no_kind_are_named_and_go(store: DiskStore) -> None:
    for name in ("stranger", "z"):
        execute(store, "INSERT INTO Cache (key, raw, size) VALUES (?, 1, 0)", name)
    assert_named_and_fixed(store, "row", entries=4)


def test_bodies_that_no_entry_names_are_orphans(store: DiskStore) -> None:
    execute(store, "DELETE FROM Cache WHERE key LIKE '[%a/v1%' OR key LIKE '[%b/v1%'")
    assert_named_and_fixed(store, "orphan", "orphan", entries=2)
    assert len([path for path in (store.directory / "bodies").rglob("*") if path.is_file()]) == 2


def test_files_that_the_index_does_not_know_are_orphans_after_ten_minutes(store: DiskStore) -> None:
    paths = [store.directory / "bodies" / digit / (digit * 64) for digit in "ef"]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    assert store.check(fix=True) == ()  # their writers may be about to name them
    assert all(path.exists() for path in paths)
    for path in paths:
        os.utime(path, (time.time() - 700, time.time() - 700))
    assert_named_and_fixed(store, "orphan", "orphan", entries=4)
    assert not any(path.exists() for path in paths)


def test_a_wrong_sum_of_the_sizes_is_named(store: DiskStore) -> None:
    execute(store, "UPDATE Settings SET value = value + 5 WHERE key = 'size'")
    assert_named_and_fixed(store, "size", entries=4)


def test_an_index_of_sqlite_that_lacks_a_row_is_rebuilt(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "cache") as store:
        store.put(key("a/v1"), b"x", metadata={})
    with closing(sqlite3.connect(tmp_path / "cache" / "cache.db", isolation_level=None)) as damaged:
        name = "Cache_expire_time"
        columns = damaged.execute("SELECT * FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        damaged.execute("PRAGMA writable_schema = ON")
        damaged.execute("DELETE FROM sqlite_master WHERE name = ?", (name,))
        damaged.execute("PRAGMA writable_schema = RESET")
        damaged.execute("UPDATE Cache SET expire_time = 2.0")
        damaged.execute("PRAGMA writable_schema = ON")
        damaged.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", columns)
    with DiskStore.open(tmp_path / "cache") as store:
        for fix in (False, False, True):
            found = store.check(fix=fix)
            assert {(problem.kind, problem.is_fixed) for problem in found} == {("index", fix)}
        assert store.check() == ()
        assert store.get(key("a/v1")) is not None

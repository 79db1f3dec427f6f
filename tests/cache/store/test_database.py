"""Transactions and errors of the index's database, over threads, processes and files that were cut."""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from typing import TYPE_CHECKING

import pytest

from specmux_cache.errors import (
    DiskFull,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from specmux_cache.store.database import Database, _kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INSERT = "INSERT INTO Settings VALUES (?, 1)"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path, busy_timeout=60.0)
    yield opened
    opened.retire()


def names(database: Database) -> set[str]:
    return {name for (name,) in database.execute("SELECT key FROM Settings WHERE key LIKE 'specmux_row %'")}


def test_transaction_that_fails_leaves_nothing_and_the_outermost_decides(database: Database) -> None:
    with database.transaction():
        database.execute(INSERT, ("specmux_row 1",))
    with pytest.raises(KeyError), database.transaction():
        with database.transaction():
            database.execute(INSERT, ("specmux_row 2",))
        raise KeyError
    assert names(database) == {"specmux_row 1"}
    with database.transaction(), database.transaction():
        database.execute(INSERT, ("specmux_row 3",))
    with pytest.raises(DiskFull, match="rolled back"), database.transaction():
        database.execute(INSERT, ("specmux_row 4",))
        database.execute("ROLLBACK")
    other = Database(database.path.parent, busy_timeout=0.0)
    assert names(other) == {"specmux_row 1", "specmux_row 3"}
    other.retire()


def test_writer_waits_for_another_and_gives_up_in_time(database: Database) -> None:
    impatient = Database(database.path.parent, busy_timeout=0.0)
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with impatient.transaction():
            is_held.set()
            may_go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60)
    timer = threading.Timer(0.05, may_go.set)
    try:
        with pytest.raises(StoreBusy), database.transaction(wait=False):
            pass
        third = Database(database.path.parent, busy_timeout=0.0)
        with pytest.raises(StoreBusy):
            third.execute(INSERT, ("specmux_row 1",))
        with pytest.raises(StoreBusy), third.transaction():
            pass
        third.retire()
        timer.start()
        database.execute(INSERT, ("specmux_row 2",))
        with database.transaction():
            database.execute(INSERT, ("specmux_row 3",))
    finally:
        may_go.set()
        holder.join()
    assert names(database) == {"specmux_row 2", "specmux_row 3"}
    impatient.retire()


def test_forked_child_has_a_connection_of_its_own(database: Database) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a process with threads forks
        child = os.fork()
    if child == 0:
        status = 1
        try:
            with database.transaction():
                database.execute(INSERT, ("specmux_row 1",))
            status = 0 if len(database._inherited) == 1 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names(database) == {"specmux_row 1"}
    assert database._inherited == []


@pytest.mark.parametrize("size", [0, 1, 4096, 32767])
def test_map_of_the_log_that_was_cut_gets_its_size_back(database: Database, size: int) -> None:
    path = database.path.with_name("cache.db-shm")
    for number in range(3):
        database.execute(INSERT, (f"specmux_row {number}",))
        whole = path.stat().st_size
        os.truncate(path, size)
        assert database.is_current()
        assert path.stat().st_size == whole
        os.truncate(path, size)
        assert len(names(database)) == number + 1
    os.truncate(path, size)
    database.retire()
    again = Database(database.path.parent, busy_timeout=0.0)
    assert len(names(again)) == 3
    again.retire()


def test_database_that_is_retired_or_replaced_says_so(database: Database) -> None:
    assert database.is_current()
    database.path.rename(database.path.with_name("aside"))
    assert not database.is_current()
    database.path.touch()
    assert not database.is_current()
    database.retire()
    with pytest.raises(StoreUnavailable, match="closed"):
        database.execute("SELECT 1")


def test_database_that_is_only_read_refuses_changes(database: Database) -> None:
    database.execute(INSERT, ("specmux_row 1",))
    database.retire()
    read = Database(database.path.parent, busy_timeout=0.0, is_read_only=True)
    assert names(read) == {"specmux_row 1"}
    assert read.is_current()
    with pytest.raises(StoreReadOnly), read.transaction():
        read.execute(INSERT, ("specmux_row 2",))
    read.retire()


def test_free_pages_are_given_back_some_at_a_time(database: Database) -> None:
    for number in range(100):
        database.execute("INSERT INTO Settings VALUES (?, ?)", (f"u{number}", "x" * 4000))
    database.execute("DELETE FROM Settings WHERE key LIKE 'u%'")
    before = database.free_bytes()
    assert before >= 100 * 4096
    assert database.shrink(10)
    assert before - database.free_bytes() == 10 * 4096
    assert database.wal_bytes() > 0
    while database.shrink(64):
        pass
    assert database.free_bytes() == 0
    database.checkpoint()
    assert database.wal_bytes() == 0


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_LOCKED, StoreBusy),
        (sqlite3.SQLITE_PROTOCOL, StoreBusy),
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_IOERR_WRITE, DiskFull),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreUnavailable),
        (sqlite3.SQLITE_CORRUPT, StoreDamaged),
        (sqlite3.SQLITE_NOTADB, StoreDamaged),
        (sqlite3.SQLITE_ERROR, StoreDamaged),
        (None, StoreDamaged),
    ],
)
def test_errors_of_sqlite_are_told_apart(code: int | None, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("something")
    if code is not None:
        error.sqlite_errorcode = code
    assert _kind(error) is kind


def test_errors_of_others_are_damage_and_of_a_closed_connection_are_not() -> None:
    assert _kind(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")) is StoreDamaged
    assert _kind(sqlite3.ProgrammingError("closed")) is StoreUnavailable

"""What someone else wrote into the index is a miss, and runs nothing."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePath

import diskcache
import pytest

from running.open_files import needs_proc, open_in
from specmux_cache.errors import StoreDamaged, StoreUnavailable
from specmux_cache.store.database import INDEX_FILE, Database, uri_of
from specmux_cache.store.disk_store import Digest, DiskStore
from specmux_cache.store.index import Index
from specmux_cache.store.keys import Key
from specmux_cache.store.plain_disk import PlainDisk
from specmux_cache.store.rows import Row, key_range, key_text, parse_key, seal, unseal

KEY = Key("https://one", "anonymous", "apps/v1", "A1", "application/json")
OTHER = Key("https://one", "anonymous", "batch/v1", "B1", "application/json")
DIGEST = Digest("a" * 64)


class Harmful:
    """Its pickle creates a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def stored(directory: Path) -> None:
    with DiskStore.open(directory) as store:
        store.put(KEY, b"body" * 100, metadata={"etag": "1"})
        store.put(OTHER, b"other" * 100, metadata={"etag": "2"})


def tamper(directory: Path, statement: str, *values: object) -> None:
    """In another process: here, closing the database would drop the locks of an open store."""
    script = (
        "import pickle, sqlite3, sys\n"
        "with sqlite3.connect(sys.argv[1]) as db:\n"
        "    assert db.execute(sys.argv[2], pickle.load(sys.stdin.buffer)).rowcount != 0\n"
    )
    command = [sys.executable, "-c", script, str(directory / "cache.db"), statement]
    subprocess.run(command, input=pickle.dumps(values), check=True)


TAMPERED = {
    "a pickle as value": ("UPDATE Cache SET mode = 4, value = ? WHERE key = ?", b"\x80\x04N."),
    "text that is a pickle by its mode": ("UPDATE Cache SET mode = 4 WHERE ? IS NOT NULL AND key = ?", 1),
    "a file outside": ("UPDATE Cache SET mode = 2, filename = ? WHERE key = ?", "../../../etc/passwd"),
    "an absolute file": ("UPDATE Cache SET mode = 3, filename = ? WHERE key = ?", "/etc/passwd"),
    "a path as digest": ("UPDATE Cache SET tag = ? WHERE key = ?", "../../etc/passwd"),
    "the digest of another body": ("UPDATE Cache SET tag = ? WHERE key = ?", DIGEST),
    "no digest": ("UPDATE Cache SET tag = ? WHERE key = ?", None),
    "other metadata": ("UPDATE Cache SET value = replace(value, '\"1\"', ?) WHERE key = ?", '"9"'),
    "a blob": ("UPDATE Cache SET value = CAST(value AS BLOB) WHERE ? IS NOT NULL AND key = ?", 1),
    "bytes that are not UTF-8": ("UPDATE Cache SET value = CAST(? AS TEXT) WHERE key = ?", b"\xff\xfe" * 20),
    "nothing": ("UPDATE Cache SET value = ? WHERE key = ?", None),
    "a number": ("UPDATE Cache SET value = ? WHERE key = ?", 7),
    "an access time that is none": ("UPDATE Cache SET access_time = ? WHERE key = ?", "yesterday"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_row_is_a_miss_and_goes(tmp_path: Path, case: str) -> None:
    directory = tmp_path / "cache"
    stored(directory)
    statement, value = TAMPERED[case]
    tamper(directory, statement, value, key_text(KEY))
    with DiskStore.open(directory) as store:
        assert store.get(KEY) is None
        assert store.stats().damaged == 1
        assert [row.key for row in store.rows()] == [OTHER]
        store.put(KEY, b"anew", metadata={})
        found = store.get(KEY)
        assert found is not None
        assert found.body == b"anew"
        store.check(fix=True)
        assert store.check() == ()


def test_a_row_moved_to_another_key_is_a_miss(tmp_path: Path) -> None:
    stored(tmp_path / "cache")
    tamper(tmp_path / "cache", "DELETE FROM Cache WHERE key = ?", key_text(KEY))
    tamper(tmp_path / "cache", "UPDATE Cache SET key = ? WHERE key = ?", key_text(KEY), key_text(OTHER))
    with DiskStore.open(tmp_path / "cache") as store:
        assert store.get(KEY) is None


@pytest.mark.parametrize("column", ["key", "value"])
def test_a_pickle_in_the_index_is_never_loaded(tmp_path: Path, column: str) -> None:
    """CVE-2025-69872."""
    directory, loaded = tmp_path / "cache", tmp_path / "loaded"
    stored(directory)
    harmful = pickle.dumps(Harmful(loaded))
    raw = 0 if column == "key" else 1
    tamper(
        directory,
        f"UPDATE Cache SET {column} = ?, raw = ?, mode = 4 WHERE key = ?",
        harmful,
        raw,
        key_text(KEY),
    )
    with DiskStore.open(directory) as store:
        assert store.get(KEY) is None
        list(store.rows())
        store.compact(max_bytes=0)
        store.check(fix=True)
        assert store.check() == ()
        store.clear()
    assert not loaded.exists()


def test_values_in_the_index_count_no_bytes_of_files(tmp_path: Path) -> None:
    """diskcache adds what is counted here to the size of the database, in which they are."""
    size, mode, name, value = PlainDisk(str(tmp_path)).store("value", read=False)
    assert (size, mode, name, value) == (0, diskcache.core.MODE_RAW, None, "value")


def test_plain_disk_refuses_what_diskcache_would_load(tmp_path: Path) -> None:
    disk = PlainDisk(str(tmp_path))
    assert disk.get(*disk.put("key")) == "key"
    _, mode, _, value = disk.store(1.5, False)
    assert disk.fetch(mode, None, value, False) == 1.5
    for refused in (
        lambda: disk.put(("a", 1)),
        lambda: disk.get(b"\x80\x04N.", False),
        lambda: disk.store(object(), False),
        lambda: disk.store(b"bytes", False),
        lambda: disk.store("text", True),
        lambda: disk.fetch(diskcache.core.MODE_PICKLE, None, "x", False),
        lambda: disk.fetch(diskcache.core.MODE_BINARY, "/etc/passwd", None, False),
        lambda: disk.fetch(diskcache.core.MODE_RAW, "../x", "x", False),
        lambda: disk.filename(),
        lambda: disk.remove("../x"),
    ):
        with pytest.raises(ValueError, match=r"refused|plain|no files"):
            refused()
    assert disk.fetch(*[disk.store("text", False)[index] for index in (1, 2, 3)], False) == "text"


@pytest.mark.parametrize(
    ("name", "value"),
    [("sqlite_journal_mode", "delete"), ("sqlite_query_only", 1), ("disk_unknown", 1), ("_busy_timeout", 0)],
)
def test_settings_written_by_another_are_not_followed(tmp_path: Path, name: str, value: object) -> None:
    directory = tmp_path / "cache"
    stored(directory)
    tamper(directory, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", name, value)
    with DiskStore.open(directory) as store:
        store.put(KEY, b"anew", metadata={})
        assert store.get(KEY) is not None
        assert (directory / "cache.db-wal").exists()


@pytest.mark.parametrize("size", ["many", None, 10**15, -5, 2**63 - 1, -(2**63), 2**60, -(2**60) - 1])
def test_a_wrong_sum_of_sizes_is_found_and_put_right(tmp_path: Path, size: object) -> None:
    directory = tmp_path / "cache"
    stored(directory)
    tamper(directory, "UPDATE Settings SET value = ? WHERE key = 'size'", size)
    with DiskStore.open(directory) as store:
        store.compact()
        assert store.check() == ()
        store.put(OTHER, b"there is room", metadata={})
        assert store.stats().bytes_used < 10**6


@pytest.mark.parametrize("size", [9e99, -9e99, float("inf"), "x", None, b"\0", -5, 2**63 - 1, -(2**63)])
def test_sizes_that_are_none_count_for_nothing(tmp_path: Path, size: object) -> None:
    directory = tmp_path / "cache"
    stored(directory)
    tamper(directory, "UPDATE Cache SET size = ?", size)
    with DiskStore.open(directory) as store:
        store.check(fix=True)
        store.compact()
        store.put(OTHER, b"there is room", metadata={})
        assert store.get(OTHER) is not None
        store.check(fix=True)
        assert store.check() == ()
        assert 0 <= store.stats().bytes_used < 10**6


def test_an_index_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    stored(directory)
    tamper(directory, "PRAGMA user_version = 2")
    before = (directory / "cache.db").read_bytes()
    with pytest.raises(StoreUnavailable, match="newer"):
        DiskStore.open(directory)
    assert (directory / "cache.db").read_bytes() == before


@needs_proc
def test_an_index_that_cannot_be_used_is_not_held_open(tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreDamaged) as refused:
        Database(tmp_path, busy_timeout=1.0)
    # The error keeps all that was under way alive: what is closed now was not closed by being forgotten.
    assert refused.tb is not None
    assert open_in(tmp_path) == set()


def test_key_text_and_ranges_agree() -> None:
    text = key_text(KEY)
    assert parse_key(text) == KEY
    fields = (KEY.server, KEY.partition, KEY.group_version, KEY.media_type)
    for length in range(5):
        low, high = key_range(*fields[:length])
        assert low <= text < high
    low, high = key_range("https://on")
    assert not low <= text < high


def test_unseal_refuses_what_was_sealed_for_another_key_or_digest() -> None:
    row = Row(KEY, DIGEST, 5, "identity", 1.0, 2.0, 3.0, {"a": 1})
    text = seal(row)
    assert unseal(text, key=key_text(KEY), digest=DIGEST, accessed_at=3.0, superseded=False) == row
    for key, digest in ((key_text(OTHER), DIGEST), (key_text(KEY), "b" * 64)):
        with pytest.raises(ValueError, match="checksum"):
            unseal(text, key=key, digest=digest, accessed_at=3.0, superseded=False)


def test_index_is_laid_out_once_and_again_where_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_and_count() -> int:
        done = []
        lay_out = Database._lay_out
        with monkeypatch.context() as patched:
            patched.setattr(Database, "_lay_out", lambda self: (done.append(1), lay_out(self)))
            Database(tmp_path, busy_timeout=1.0).retire()
        return len(done)

    assert [open_and_count() for _ in range(3)] == [1, 0, 0]
    tamper(tmp_path, "DROP TRIGGER Settings_size_insert")
    assert [open_and_count() for _ in range(2)] == [1, 0]


def test_index_that_is_laid_out_is_opened_without_diskcache(tmp_path: Path) -> None:
    program = """
import sys
from contextlib import closing
from pathlib import Path
from specmux_cache.store.database import Database
database = Database(Path(sys.argv[1]), busy_timeout=1.0)
database.execute("INSERT INTO Cache (key, raw, size) VALUES (hex(randomblob(4)), 1, 7)")
print("diskcache" in sys.modules)
"""

    def is_diskcache_needed() -> str:
        command = [sys.executable, "-c", program, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=True
        ).stdout.strip()

    assert [is_diskcache_needed() for _ in range(2)] == ["True", "False"]
    for damage in (
        "DROP TRIGGER Settings_size_insert",
        "DROP INDEX Cache_expire_time",
        "INSERT INTO Settings VALUES ('sqlite_mmap_size2', 1)",
        "UPDATE Settings SET value = 3 WHERE key = 'cull_limit'",
        "PRAGMA user_version = 0",
    ):
        with closing(sqlite3.connect(tmp_path / INDEX_FILE)) as connection, connection:
            connection.execute(damage)
        assert [is_diskcache_needed() for _ in range(2)] == ["True", "False"], damage


@pytest.mark.parametrize("name", ["cache.db", "a b%20?x=1#y", "ü/\udc80", "//twice"])
def test_uri_is_that_of_the_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("/", name)
    expected = path.as_uri()
    monkeypatch.delattr(PurePath, "as_uri")  # imports urllib.request in Python 3.14
    assert uri_of(path) == expected


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    opened = Index(tmp_path, busy_timeout=1.0)
    yield opened
    opened.database.retire()


def test_more_values_than_one_statement_takes_are_asked_for_in_parts(index: Index) -> None:
    digests = [Digest(f"{number:064x}") for number in range(600)]
    known = digests[1::2]
    for digest in known:
        index.write_body(digest, encoding="zstd", allocated=4096, pending=False, now=1.0)
        index.write_entry(f"[{digest}", "value", digest=digest, data=None, now=1.0)
    assert sorted(index.unknown(digests)) == digests[::2]
    assert sorted(index.list_unreferenced(digests)) == digests[::2]
    assert index.references(digests) == dict.fromkeys(known, 1)
    assert index.counts() == (300, 0, 300)
    index.delete_bodies(digests)
    assert index.counts() == (300, 0, 0)
    assert index.body_bytes() == 0


def test_bodies_are_known_by_what_their_writer_said(index: Index) -> None:
    for pending in (True, False):
        index.write_body(DIGEST, encoding="zstd", allocated=4096, pending=pending, now=7.0, packed=DIGEST)
        found = index.body(DIGEST)
        assert found is not None
        assert (found.is_pending, found.encoding, found.packed) == (
            pending,
            "identity" if pending else "zstd",
            DIGEST,
        )
        assert [body.pending_since for body in index.pending(limit=9)] == [7.0] * pending
    index.write_body(DIGEST, encoding="zstd", allocated=4096, pending=True, now=7.0)
    assert [body.packed for body in index.pending(limit=9)] == [None]
    for column, value in (("store_time", "yesterday"), ("value", "another"), ("size", "many")):
        index.write_body(DIGEST, encoding="zstd", allocated=4096, pending=column == "store_time", now=7.0)
        index.database.execute(f"UPDATE Cache SET {column} = ?", (value,))
        found = index.body(DIGEST)
        assert found is not None
        assert found.is_pending
        assert found.pending_since == (0.0 if column == "store_time" else 7.0)
    assert index.body("b" * 64) is None


@pytest.mark.parametrize("size", ["many", None, b""])
def test_a_sum_that_is_no_number_is_counted_anew(index: Index, size: object) -> None:
    index.write_body(DIGEST, encoding="zstd", allocated=4096, pending=False, now=1.0)
    index.database.execute("UPDATE Settings SET value = ? WHERE key = 'size'", (size,))
    assert index.body_bytes() == 4096
    index.database.execute("DELETE FROM Settings WHERE key = 'size'")
    assert index.body_bytes() == 4096


def test_notes_are_numbers_or_none(index: Index) -> None:
    assert index.read_note("a") is None
    index.note("a", 1.5)
    index.note("a", 2.5)
    assert index.read_note("a") == 2.5
    assert index.database.execute("SELECT value FROM Settings WHERE key = 'specmux_a'") == [(2.5,)]
    index.database.execute("UPDATE Settings SET value = 'yesterday' WHERE key = 'specmux_a'")
    assert index.read_note("a") is None
    index.database.execute("UPDATE Settings SET value = 3 WHERE key = 'specmux_a'")
    assert index.read_note("a") == 3.0


def test_victims_come_in_order_with_what_their_removal_frees(index: Index) -> None:
    index.write_body(DIGEST, encoding="zstd", allocated=8192, pending=False, now=1.0)
    index.write_entry("[b", "value", digest=DIGEST, data=None, now=2.0)
    index.write_entry("[a", "value", digest="d", data=b"small", now=1.0)
    found = index.least_recently_used(before=3.0, limit=9)
    assert [(each.digest, each.is_inline, each.row_bytes, each.allocated) for each in found] == [
        ("d", True, 4 + 2 + 5 + 5, 0),
        (DIGEST, False, 4 + 128 + 5, 8192),
    ]
    assert index.least_recently_used(before=3.0, limit=1) == found[:1]
    assert index.least_recently_used(before=3.0, limit=9, offset=1) == found[1:]
    assert index.least_recently_used(before=2.0, limit=9) == found[:1]
    assert index.named_file("[a") is None
    assert index.named_file("[b") == DIGEST
    index.database.execute("UPDATE Cache SET size = 'many'")
    assert [each.allocated for each in index.least_recently_used(before=3.0, limit=9)] == [0, 0]


@pytest.mark.parametrize("text", ["", "{}", "[]", '["a", "b", "c", "d"]', '["a", "b", "c", "d", 5]', "5"])
def test_only_the_text_of_a_key_is_a_key(text: str) -> None:
    with pytest.raises(ValueError, match=r"key|Expecting"):
        parse_key(text)


def test_unseal_refuses_an_encoding_that_is_not_ours() -> None:
    text = seal(Row(KEY, DIGEST, 5, "gzip", 1.0, 2.0, 3.0, {}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="encoding"):
        unseal(text, key=key_text(KEY), digest=DIGEST, accessed_at=3.0, superseded=False)

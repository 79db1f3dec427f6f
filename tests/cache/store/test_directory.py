"""What makes a directory a store, and who may have it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from running.open_files import needs_proc, open_in
from specmux_cache.errors import StoreUnavailable
from specmux_cache.store.directory import (
    TAG_TEXT,
    accept_read_only,
    fill_reserve,
    hold_lock,
    is_read_only,
    prepare,
    release_reserve,
)
from specmux_cache.store.disk_store import DiskStore

RESULT = "0" * 64 + ".json"


def contents_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file with what changes when it is written anew."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_ino, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    DiskStore.open(tmp_path / "cache").close()
    return tmp_path / "cache"


def test_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    prepare(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c" / "version").is_file()


def test_marker_files_are_written_once(store: Path) -> None:
    before = contents_of(store)
    prepare(store)
    assert contents_of(store) == before


@pytest.mark.parametrize(
    "files",
    [
        {"version": "specmux-cache 2\n"},
        {"version": "specmux-cache 2\n", "cache.db": ""},
        {"version": "specmux-cache 2\n", "CACHEDIR.TAG": TAG_TEXT},
        {"version": "specmux-cache 2\n", "CACHEDIR.TAG": TAG_TEXT, "cache.db": "no database" * 1000},
        {"version": "specmux-cache one\n"},
        {"version": "specmux-cache one\n", "cache.db": "", "CACHEDIR.TAG": "Signature: another's"},
        {"version": "another 1\n", "CACHEDIR.TAG": TAG_TEXT},
        {"cache.db": ""},
        {"CACHEDIR.TAG": TAG_TEXT, "lock": "", "thesis.txt": ""},
        {"lock.txt": ""},
        {"checks/thesis.txt": "", f"checks/{RESULT}": ""},
        {"checks": ""},
    ],
    ids=str,
)
def test_directory_that_may_be_anothers_is_refused_and_left_alone(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = contents_of(tmp_path)
    with pytest.raises(StoreUnavailable):
        prepare(tmp_path)
    assert contents_of(tmp_path) == before


@pytest.mark.parametrize(
    "names",
    [["lock"], ["CACHEDIR.TAG.0f", "version.0f", "lock"], [f"checks/{RESULT}", f"checks/.{RESULT}.1"]],
)
def test_directory_that_was_begun_is_taken_over(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    prepare(tmp_path)
    assert (tmp_path / "version").is_file()


def test_old_results_go_and_what_else_lies_there_stays(store: Path) -> None:
    (store / "checks").mkdir()
    for name in (RESULT, "notes.txt"):
        (store / "checks" / name).touch()
    prepare(store)
    assert [path.name for path in (store / "checks").iterdir()] == ["notes.txt"]
    (store / "checks" / "notes.txt").unlink()
    prepare(store)
    assert not (store / "checks").exists()


def test_old_results_behind_a_link_stay(store: Path, tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / RESULT).touch()
    (store / "checks").symlink_to(tmp_path / "aside")
    prepare(store)
    assert (tmp_path / "aside" / RESULT).exists()


def test_directory_of_another_user_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    # Only root could give it to another; so this process becomes another.
    monkeypatch.setattr("specmux_cache.store.directory.os.geteuid", lambda: own + 1)
    with pytest.raises(StoreUnavailable, match="another user"):
        prepare(store)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has what lies in an image")
@pytest.mark.parametrize(("mode", "is_accepted"), [(0o755, True), (0o775, False), (0o757, False)])
def test_directory_of_an_image_is_read_unless_others_may_write(
    store: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_accepted: bool
) -> None:
    store.chmod(mode)
    monkeypatch.setattr("specmux_cache.store.directory.os.geteuid", lambda: 4711)
    if is_accepted:
        accept_read_only(store)
    else:
        with pytest.raises(StoreUnavailable, match="another user"):
            accept_read_only(store)


@pytest.mark.parametrize("unwritable", ["directory", "index", "both"])
def test_store_is_read_only_where_directory_or_index_cannot_be_written_to(
    store: Path, monkeypatch: pytest.MonkeyPatch, unwritable: str
) -> None:
    assert not is_read_only(store)
    refused = {"directory": {store}, "index": {store / "cache.db"}, "both": {store, store / "cache.db"}}
    # Root may write anywhere, so what the system says is put in.
    monkeypatch.setattr(
        "specmux_cache.store.directory.os.access", lambda path, mode: path not in refused[unwritable]
    )
    assert is_read_only(store)
    assert not is_read_only(store.with_name("none"))


def test_read_only_directory_that_is_a_link_or_newer_is_refused(store: Path) -> None:
    accept_read_only(store)
    link = store.with_name("link")
    link.symlink_to(store)
    with pytest.raises(StoreUnavailable, match="symlink"):
        accept_read_only(link)
    (store / "CACHEDIR.TAG").unlink()
    (store / "version").write_text("specmux-cache 2\n")
    with pytest.raises(StoreUnavailable, match="newer"):
        accept_read_only(store)


@needs_proc
def test_reserve_is_filled_once_and_released_once(tmp_path: Path) -> None:
    fill_reserve(tmp_path, 65536)
    status = (tmp_path / "reserve").stat()
    assert (status.st_size, status.st_blocks * 512) == (65536, 65536)
    fill_reserve(tmp_path, 65536)
    assert (tmp_path / "reserve").stat().st_mtime_ns == status.st_mtime_ns
    assert open_in(tmp_path) == set()
    assert release_reserve(tmp_path)
    assert not (tmp_path / "reserve").exists()
    assert not release_reserve(tmp_path)


def test_reserve_on_a_full_disk_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(descriptor: int, offset: int, size: int) -> None:
        os.write(descriptor, b"x" * 4096)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("specmux_cache.store.directory.os.posix_fallocate", fill)
    fill_reserve(tmp_path, 65536)
    assert (tmp_path / "reserve").stat().st_size == 0


@needs_proc
def test_lock_is_one_holders_and_is_let_go(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            hold_lock(tmp_path / "lock", timeout=0) as first,
            hold_lock(tmp_path / "lock", timeout=0) as second,
        ):
            assert (first, second) == (True, False)
        assert open_in(tmp_path) == set()


def test_lock_is_waited_for(tmp_path: Path) -> None:
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with hold_lock(tmp_path / "lock", timeout=0):
            is_held.set()
            may_go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60)
    timer = threading.Timer(0.05, may_go.set)
    timer.start()
    try:
        with hold_lock(tmp_path / "lock", timeout=60) as got:
            assert got
    finally:
        may_go.set()
        holder.join()
        timer.join()


def test_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "aside")
    with pytest.raises(OSError, match="symbolic"), hold_lock(tmp_path / "lock", timeout=0):
        pass
    assert not (tmp_path / "aside").exists()

"""What a client's store keeps on disk is its user's alone; what it cannot write lies above, in memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from running.open_files import needs_proc, open_in
from specmux_cache.errors import StoreUnavailable
from specmux_cache.store.bodies import digest_of
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.opening import MEMORY_BYTES, MemoryStore, OverlaidStore, Store, open_store


def key(name: str) -> Key:
    return Key("https://one", "anonymous", name, "A", "application/json")


def test_directory_and_secret_are_their_user_s_alone(tmp_path: Path) -> None:
    store, _, secret = open_store(tmp_path / "c", limits=StoreLimits(), clock=time.time, warn=pytest.fail)
    store.put(key("a/v1"), bytes(range(256)) * 40, metadata={})
    store.close()
    kept = tmp_path / "c" / "partition.key"
    assert kept.read_bytes() == secret
    assert kept.stat().st_mode & 0o777 == 0o600
    folders = [tmp_path / "c", *(path for path in (tmp_path / "c").rglob("*") if path.is_dir())]
    assert len(folders) > 2
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o770])
def test_directory_of_another_mode_becomes_its_user_s_alone(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    DiskStore.open(tmp_path).close()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def opened(directory: Path | None) -> tuple[Store, Path | None, bytes]:
    return open_store(directory, limits=StoreLimits(), clock=time.time, warn=pytest.fail)


def test_a_store_without_a_directory_is_memory_with_a_secret_of_its_own() -> None:
    (one, locks, secret), (_, _, other) = opened(None), opened(None)
    assert isinstance(one, MemoryStore)
    assert (locks, len(secret)) == (None, 32)
    assert secret != other


def test_a_directory_that_is_only_read_lends_its_secret_where_it_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "c" / "partition.key"
    store, locks, secret = opened(tmp_path / "c")
    assert locks == tmp_path / "c" / "flights"
    store.close()
    # Root may write anywhere, so what the system says is put in.
    monkeypatch.setattr("specmux_cache.store.directory.os.access", lambda path, mode: False)
    for written, is_lent in ((secret, True), (secret + b"x", False), (secret[:31], False), (None, False)):
        if written is None:
            kept.unlink()
        else:
            kept.write_bytes(written)
        store, locks, found = opened(tmp_path / "c")
        assert isinstance(store, OverlaidStore)
        assert locks is None
        assert (found == secret) == is_lent
        assert len(found) == 32
        store.close()


def test_a_secret_that_is_too_long_is_made_anew(tmp_path: Path) -> None:
    store, _, secret = opened(tmp_path / "c")
    store.close()
    (tmp_path / "c" / "partition.key").write_bytes(secret + b"x")
    store, _, found = opened(tmp_path / "c")
    store.close()
    assert len(found) == 32
    assert found != secret
    assert (tmp_path / "c" / "partition.key").read_bytes() == found


@needs_proc
def test_a_directory_whose_secret_cannot_be_kept_is_let_go(tmp_path: Path) -> None:
    warnings: list[str] = []
    opened(tmp_path / "c")[0].close()
    assert open_in(tmp_path) == set()
    (tmp_path / "c" / "partition.key").unlink()
    (tmp_path / "c" / "partition.key").mkdir()
    store, _, secret = open_store(tmp_path / "c", limits=StoreLimits(), clock=time.time, warn=warnings.append)
    assert isinstance(store, MemoryStore)
    assert len(secret) == 32
    assert open_in(tmp_path) == set()
    assert str(tmp_path / "c") in warnings[0]
    (tmp_path / "file").touch()
    open_store(tmp_path / "file", limits=StoreLimits(), clock=time.time, warn=warnings.append)
    assert len(warnings) == 2
    assert "using memory instead" in warnings[1]


def test_changes_lie_above_a_directory_that_is_only_read(tmp_path: Path) -> None:
    with DiskStore.open(tmp_path / "c") as disk:
        for name in ("a/v1", "b/v1", "c/v1"):
            disk.put(key(name), name.encode(), metadata={"size": 4})
        store = OverlaidStore(disk, MemoryStore(MEMORY_BYTES, clock=time.time))
        assert store.put(key("a/v1"), b"newer", metadata={}) == digest_of(b"newer")
        store.put(key("d/v1"), b"new", metadata={})
        assert store.touch(key("b/v1"), metadata={"etag": "2"})
        assert store.touch(key("d/v1"), metadata={"etag": "3"})
        assert not store.touch(key("e/v1"), metadata={})
        assert store.delete(key("c/v1"))
        assert not store.delete(key("c/v1"))
        assert not store.delete(key("e/v1"))
        found = {name: store.get(key(name)) for name in ("a/v1", "b/v1", "c/v1", "d/v1", "e/v1")}
        bodies = {name: each and each.body for name, each in found.items()}
        assert bodies == {"a/v1": b"newer", "b/v1": b"b/v1", "c/v1": None, "d/v1": b"new", "e/v1": None}
        assert found["b/v1"] is not None
        assert dict(found["b/v1"].row.metadata) == {"size": 4, "etag": "2"}
        assert sorted(row.key.group_version for row in store.rows()) == ["a/v1", "b/v1", "d/v1"]
        assert {row.key.group_version for row in disk.rows()} == {"a/v1", "b/v1", "c/v1"}
        assert store.delete(key("a/v1"))
        assert store.get(key("a/v1")) is None
        assert store.delete(key("d/v1"))
        assert store.get(key("d/v1")) is None
        assert [row.key.group_version for row in store.rows()] == ["b/v1"]
        left = disk.get(key("b/v1"))
        assert left is not None and dict(left.row.metadata) == {"size": 4}
        store.put(key("c/v1"), b"again", metadata={})
        assert sorted(row.key.group_version for row in store.rows()) == ["b/v1", "c/v1"]
        store.close()
        assert list(store._above.rows()) == []
        with pytest.raises(StoreUnavailable, match="closed"):
            disk.get(key("b/v1"))

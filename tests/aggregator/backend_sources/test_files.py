"""A scan of a directory: what it sees, and what it asks the file system for."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from specmux_aggregator.backend_sources import files
from specmux_aggregator.backend_sources.files import Folder
from specmux_aggregator.model.failure import Failure


class Counted:
    """A folder whose listings are counted."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = Folder(path, max_files=100, max_bytes=1 << 20)
        self.listed = 0
        scandir = os.scandir

        def counting(at: Any) -> Any:
            self.listed += 1
            return scandir(at)

        monkeypatch.setattr(os, "scandir", counting)

    def scan(self) -> set[str]:
        found = asyncio.run(self.folder.scan())
        assert not isinstance(found, Failure)
        return set(found)


def tree(folder: Path, *names: str, age: float = 60.0) -> None:
    """Files in folders that have not changed for ``age`` seconds."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    then = time.time() - age
    for parent, _, _ in os.walk(folder):
        os.utime(parent, (then, then))


def test_folders_that_do_not_change_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, *(f"apis/g{number}/v1.json" for number in range(9)))
    seen = Counted(tmp_path, monkeypatch)
    first = seen.scan()
    assert (len(first), seen.listed) == (9, 11)
    assert seen.scan() == first
    assert seen.listed == 11
    tree(tmp_path / "apis/g3", "v2.json", age=30.0)
    seen.listed = 0  # making the tree lists folders as well
    assert seen.scan() == first | {"apis/g3/v2.json"}
    assert seen.listed == 1
    for _ in range(files.ALL_LISTED - 3):
        seen.scan()
    assert seen.listed == 1
    seen.scan()
    assert seen.listed == 1 + 11, "for file systems that keep no time of folders"


def test_every_change_is_seen_by_the_next_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "apis/a/v1.json", "apis/b/v1.json")
    seen = Counted(tmp_path, monkeypatch)
    before = asyncio.run(seen.folder.scan())
    (tmp_path / "apis/a/v1.json").write_bytes(b'{"changed": 1}')
    after = asyncio.run(seen.folder.scan())
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["apis/a/v1.json"] != after["apis/a/v1.json"]
    for name in ("v2.json", "v3.json", "v4.json"):  # within a tick of the clock of the folder
        (tmp_path / "apis/a" / name).write_bytes(b"{}")
        assert f"apis/a/{name}" in seen.scan()
    (tmp_path / "apis/c/d").mkdir(parents=True)
    assert len(seen.scan()) == 5
    (tmp_path / "apis/c/d/v1.json").write_bytes(b"{}")
    assert "apis/c/d/v1.json" in seen.scan()
    for path in ("apis/b/v1.json", "apis/c/d/v1.json"):
        (tmp_path / path).unlink()
    (tmp_path / "apis/c/d").rmdir()
    assert seen.scan() == {f"apis/a/v{number}.json" for number in (1, 2, 3, 4)}


def test_link_that_finds_its_file_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/v1.json").symlink_to(tmp_path / "target")
    tree(tmp_path)
    seen = Counted(tmp_path, monkeypatch)
    assert seen.scan() == set()
    (tmp_path / "target").write_bytes(b"{}")
    assert seen.scan() == {"docs/v1.json"}

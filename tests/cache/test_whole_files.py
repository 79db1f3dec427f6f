"""Files of a bounded size, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specmux_cache.whole_files import UnreadableFile, read_small


def test_file_is_read_whole_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"x" * 10)
    assert read_small(path, max_bytes=10) == b"x" * 10
    with pytest.raises(UnreadableFile, match="larger than 9 bytes"):
        read_small(path, max_bytes=9)


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UnreadableFile, match="not a regular file"):
        read_small(path)


@pytest.mark.parametrize(("name", "reason"), [("", "directory"), ("missing", "No such file")])
def test_what_is_no_file_is_refused_without_its_path(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason) as refused:
        read_small(tmp_path / name)
    assert str(tmp_path) not in str(refused.value)

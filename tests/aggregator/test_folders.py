"""Files are read within a bound, and for no more memory than they have."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from specmux_aggregator.folders import read_at_most

MOST = 64 * 1024 * 1024


@pytest.mark.parametrize(("size", "read"), [(0, 0), (5, 5), (10, 10), (11, 11), (12, 11), (500, 11)])
def test_one_byte_more_than_the_bound_is_read(tmp_path: Path, size: int, read: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    assert len(read_at_most(path, 10)) == read


def test_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"small")
    tracemalloc.start()
    try:
        assert read_at_most(path, MOST) == b"small"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"long" * 100_000,))
    writer.start()
    assert read_at_most(path, MOST) == b"long" * 100_000
    writer.join()

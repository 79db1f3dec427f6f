"""Writers that are killed: at every write point, and at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stress.store_kill import inspect, reclaim

HERE = Path(__file__).parent
WRITER = """
import itertools, pathlib, sys
from specmux_cache.store.disk_store import DiskStore
from stress.store_kill import GROUP_VERSIONS, LIMITS, body, key
with DiskStore.open(pathlib.Path(sys.argv[1]), limits=LIMITS) as store:
    print("open", flush=True)
    for turn in itertools.count(int(sys.argv[2])):
        name = GROUP_VERSIONS[turn % len(GROUP_VERSIONS)]
        store.put(key(name, str(turn)), body(name, str(turn), 1_000_000), metadata={})
"""


@pytest.mark.long
def test_a_kill_at_any_write_point_tears_and_leaks_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, HERE / "store_kill.py", tmp_path / "cache"], check=True, timeout=110)


@pytest.mark.long
def test_forty_kills_of_two_writers_at_any_moment_tear_and_leak_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    moments = random.Random(1)  # not for secrets
    for turn in range(20):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, directory, str(number * 1_000_000 + turn * 1000)],
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
            )
            for number in (1, 2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open\n"
        time.sleep(moments.uniform(0.0, 0.05))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
        inspect(directory)
    reclaim(directory)

"""Kill -9 a process that uses a store, at each of its write points, and see what is left.

    python tests/stress/store_kill.py DIRECTORY [--rounds 40]

A write point is a statement to SQLite or a call that creates, writes, renames or removes a file. Each
round kills one child at every point in turn; a write is cut in half. After each kill the store must open,
return only what was put, and count at least what is on disk; after each round nothing may be left over.
Prints what it did; exits 1 with the reason otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specmux_cache.store import database
from specmux_cache.store.contents import INLINE_BYTES
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from specmux_cache.store.contents import INLINE_BYTES
from specmux_cache.store.disk_store import Row

LIMITS = StoreLimits(high_bytes=3 * 1024 * 1024, reserve_bytes=64 * 1024)
GROUP_VERSIONS = [f"g{number}/v1" for number in range(12)]
POINTS_MAX = 2000


def key(group_version: str, hash_: str) -> Key:
    return Key("https://one", "anonymous", group_version, hash_, "application/json")


def body(group_version: str, hash_: str, size: int = 64 * 938) -> bytes:
    """Its key says what it must be; half of it compresses. ``size`` is a multiple of 64."""
    seed = hashlib.sha256(f"{group_version} {hash_}".encode()).digest()
    return b"".join(
        hashlib.sha256(seed + bytes([n % 256, n // 256])).digest() for n in range(size // 64)
    ) + bytes(size // 2)


def work(store: DiskStore, turn: int) -> None:
    """Everything that writes."""
    group_version = GROUP_VERSIONS[turn % len(GROUP_VERSIONS)]
    store.put(key(group_version, str(turn)), body(group_version, str(turn)), metadata={"turn": turn})
    store.put(key(group_version, str(turn)), body(group_version, str(turn)), metadata={"turn": -turn})
    store.put(key("same/v1", str(turn)), body("same/v1", "same"), metadata={})
    store.put(key("small/v1", str(turn)), body("small/v1", str(turn), 2048), metadata={})
    store.put(key("replaced/v1", "same"), body("replaced/v1", str(turn % 3)), metadata={})
    store.touch(key(group_version, str(turn)), metadata={"touched": True})
    store.get(key(group_version, str(turn)))
    store.delete(key("same/v1", str(turn - 1)))
    store.compact(max_bytes=700_000)


def allowed(row: Row) -> set[bytes]:
    if row.key.group_version == "same/v1":
        return {body("same/v1", "same")}
    if row.key.group_version == "replaced/v1":
        return {body("replaced/v1", str(number)) for number in range(3)}
    return {body(row.key.group_version, row.key.hash, row.size)}


class KillSwitch:
    """Counts write points and kills this process at the one chosen."""

    def __init__(self, point: int) -> None:
        self.point = point
        self.passed = 0

    def here(self, before_dying: Callable[[], object] = lambda: None) -> None:
        self.passed += 1
        if self.passed == self.point:
            before_dying()
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        switch = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
                if not statement.startswith("SELECT"):
                    switch.here()
                return super().execute(statement, *values)

        connect, write = sqlite3.connect, os.write

        def halved_write(descriptor: int, data: bytes) -> int:
            switch.here(lambda: write(descriptor, memoryview(data)[: len(data) // 2]))
            return write(descriptor, data)

        database.sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)  # type: ignore[assignment]
        os.write = halved_write  # type: ignore[assignment]
        for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "open", "posix_fallocate"):
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.here()
            return call(*args, **options)

        return counted


def child(directory: Path, point: int, turn: int) -> bool:
    """Run the work in a child that dies at the point; whether it did."""
    pid = os.fork()
    if pid == 0:
        KillSwitch(point).install()
        try:
            with DiskStore.open(directory, limits=LIMITS) as store:
                work(store, turn)
        except BaseException as error:  # noqa: BLE001  # the parent is told by the exit status
            sys.stderr.write(f"point {point}: {error!r}\n")
            os._exit(3)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "the child failed"
    return False


def allocated(directory: Path) -> int:
    paths = (directory, *directory.rglob("*"))
    return sum(path.lstat().st_blocks * 512 for path in paths)


def inspect(directory: Path) -> int:
    """Assert that nothing torn is returned and nothing is uncounted; entries that were lost."""
    with DiskStore.open(directory, limits=LIMITS) as store:
        used = store.stats().bytes_used
        assert allocated(directory) <= used, f"{allocated(directory)} bytes on disk, {used} counted"
        lost = 0
        for row in list(store.rows()):
            found = store.get(row.key)
            assert found is None or found.body in allowed(row), f"torn: {row.key}"
            lost += found is None
        problems = [problem for problem in store.check() if problem.kind != "body"]
        assert not problems, problems
        return lost


def reclaim(directory: Path) -> None:
    """Assert that what the killed ones left goes once it is old."""
    old = time.time() - 3600
    for path in directory.rglob("*"):
        os.utime(path, (old, old))
    with DiskStore.open(directory, limits=LIMITS, clock=lambda: time.time() + 3600) as store:
        store.compact()
        assert list((directory / "tmp").glob("*")) == []
        files = {path.name for path in (directory / "bodies").rglob("*") if path.is_file()}
        assert files == {row.digest for row in store.rows() if row.size > INLINE_BYTES}, "orphans are left"
        assert store.check() == ()
        assert store.stats().bytes_used == allocated(directory) <= LIMITS.high_bytes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    killed = lost = points = 0
    for number in range(options.rounds):
        for point in range(1, POINTS_MAX):
            if not child(options.directory, point, number * POINTS_MAX + point):
                break
            killed, points = killed + 1, max(points, point)
            lost += inspect(options.directory)
        reclaim(options.directory)
    print(f"{killed} killed at {points} points, {lost} entries lost, none torn, none left behind")


if __name__ == "__main__":
    main()

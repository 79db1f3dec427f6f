"""What the store costs, beside diskcache as it comes, files with rename, and hishel's storage, in one run.

    .venv/bin/python tests/benchmarks/bench_store.py [--entries 100000] [--rounds 200] [--directory /tmp]

Bodies are of 2 KB and of 1 MB: a Kubernetes document where the reference data lies beside the checkout, else
text of the same kind. Wall-clock milliseconds and the mean of the CPU, contenders in turn within each round.
Only ours and the plain files verify what they return; only ours compresses. Then one compaction of many
entries, while one other process reads and another writes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import diskcache

sys.path.insert(0, str(Path(__file__).parents[1]))

from figures import keep

from shared_data import DATA, read
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1_000_000
DOCUMENT = DATA / "k8s-pairs/1.35/v3/api/v1.json.gz"
NEIGHBOUR = """
import pathlib, sys, time
from specmux_cache.store.keys import Key
from specmux_cache.store.disk_store import DiskStore, StoreLimits
directory, mode, entries = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
key = lambda number: Key("https://one", "p", f"g{number}/v1", "1", "m")
times = []
with DiskStore.open(directory, limits=StoreLimits(high_bytes=1 << 40)) as store:
    print("ready", flush=True)
    turn = 0
    while not pathlib.Path(sys.argv[4]).exists():
        turn += 1
        begun = time.perf_counter()
        if mode == "reader":
            assert store.get(key(entries - 1 - turn % 500)) is not None
        else:
            store.put(key(entries + turn), b"new %d" % turn, metadata={})
        times.append(time.perf_counter() - begun)
        time.sleep(0.002)
times.sort()
print(f"{len(times)} calls, p50 {times[len(times) // 2] * 1e3:.2f}, "
      f"p99 {times[int(len(times) * 0.99)] * 1e3:.2f}, longest {times[-1] * 1e3:.2f} ms")
"""


def document() -> bytes:
    found = read(DOCUMENT)[:SIZE] if DOCUMENT.is_file() else b""
    if len(found) == SIZE:
        return found
    words = random.Random(1)
    lines = (
        f'"{words.randrange(10**6)}": {{"type": "string", "description": "{words.random()}"}},'
        for _ in range(20_000)
    )
    return "".join(lines).encode()[:SIZE]


def variant(body: bytes, number: int) -> bytes:
    return b"%12d" % number + body[12:]


def key(number: int) -> Key:
    return Key("https://one", "p", f"g{number}/v1", "1", "m")


class Files:
    """The least that is right: sha256 as name, written beside, renamed; verified on the way out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def put(self, name: str, body: bytes) -> None:
        beside = self.directory / f"{name}.tmp"
        beside.write_bytes(hashlib.sha256(body).digest() + body)
        beside.replace(self.directory / name)

    def get(self, name: str) -> bytes:
        data = (self.directory / name).read_bytes()
        assert hashlib.sha256(data[32:]).digest() == data[:32]
        return data[32:]


class Hishel:
    def __init__(self, directory: Path) -> None:
        import hishel

        directory.mkdir()
        self.hishel = hishel
        self.storage = hishel.SqliteStorage(database_path=directory / "hishel.db")

    def put(self, name: str, body: bytes) -> None:
        request = self.hishel.Request("GET", f"https://one/{name}")
        response = self.hishel.Response(200, stream=iter([body]))
        for _ in self.storage.create_entry(request, response, name).response.stream:
            pass

    def get(self, name: str) -> bytes:
        [entry, *_] = self.storage.get_entries(name)
        return b"".join(entry.response.stream)


def timed(call: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Milliseconds on the clock, microseconds of CPU."""
    begun, cpu = time.perf_counter(), time.process_time()
    call(*arguments)
    return (time.perf_counter() - begun) * 1e3, (time.process_time() - cpu) * 1e6


def calls_beside_others(directory: Path, rounds: int, size: int) -> dict[str, list[float | None]]:
    """The rows of the plot. Without hishel where it is not installed."""
    directory.mkdir()
    body = document()[:size]
    ours = DiskStore.open(directory / "ours")
    plain = diskcache.Cache(str(directory / "diskcache"))
    files = Files(directory / "files")
    hishel = Hishel(directory / "hishel") if find_spec("hishel") else None
    calls: dict[str, Callable[[int, bytes], Any]] = {
        "specmux put, new": lambda number, new: ours.put(key(number), new, metadata={}),
        "specmux put, already there": lambda number, new: ours.put(key(number + 10_000), new, metadata={}),
        "specmux get, verified": lambda number, _: ours.get(key(number)),
        "specmux touch": lambda number, _: ours.touch(key(number), metadata={"etag": "1"}),
        "diskcache set": lambda number, new: plain.set(str(number), new),
        "diskcache get, unverified": lambda number, _: plain.get(str(number)),
        "files put": lambda number, new: files.put(str(number), new),
        "files get, verified": lambda number, _: files.get(str(number)),
    }
    if hishel is not None:
        calls["hishel put"] = lambda number, new: hishel.put(str(number), new)
        calls["hishel get, unverified"] = lambda number, _: hishel.get(str(number))
    times: dict[str, list[float]] = {name: [] for name in calls}
    cpu = dict.fromkeys(calls, 0.0)
    for number in range(rounds):
        new = variant(body, number)
        for name, call in calls.items():
            wall, spent = timed(call, number, new)
            times[name].append(wall)
            cpu[name] += spent / rounds
    print(f"bodies of {len(body)} bytes, {rounds} rounds")
    for name, values in times.items():
        values.sort()
        p50, p99 = statistics.median(values), values[int(rounds * 0.99)]
        print(f"  {name:28} p50 {p50:7.3f}  p99 {p99:7.3f} ms  CPU {cpu[name]:6.0f} us")
    print(
        f"  on disk: specmux {ours.stats().bytes_used / 1e6:.1f} MB, diskcache {plain.volume() / 1e6:.1f} MB"
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    what = f"{len(body) // 1000} KB body" if size < SIZE else f"{len(body) / 1e6:.0f} MB body"
    rows = {
        f"get of a {what}": [name for name in calls if " get" in name],
        f"put of a new {what}": ["specmux put, new", "diskcache set", "files put", "hishel put"],
    }
    ours.close()
    plain.close()
    if hishel is not None:
        hishel.storage.close()
    return {row: [*map(medians.get, names), *[None] * (4 - len(names))] for row, names in rows.items()}


def compaction(directory: Path, entries: int) -> None:
    limits = StoreLimits(high_bytes=1 << 40)
    with DiskStore.open(directory / "many", limits=limits) as store:
        for start in range(0, entries, 1000):
            # One transaction for many, so that filling does not take longer than what is measured.
            with store._contents.index.database.transaction():
                for number in range(start, min(start + 1000, entries)):
                    store.put(key(number), b"body %d" % number, metadata={"etag": f'"{number}"'})
        store.compact(max_bytes=1 << 40)
        _compact(store, 0.8, neighbours=("reader", "writer"))
        _compact(store, 0.0, neighbours=())


def _compact(store: DiskStore, part: float, *, neighbours: tuple[str, ...]) -> None:
    before, stop = store.stats(), store.directory.with_name(f"stop {part}")
    running = [(mode, _neighbour(store, mode, before.entries, stop)) for mode in neighbours]
    cpu, wall = time.process_time(), time.perf_counter()
    store.compact(max_bytes=int(before.bytes_used * part))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    stop.touch()
    print(f"{before.entries} entries compacted to {part:.0%} of their bytes: {wall:.2f} s, CPU {cpu:.2f} s")
    for mode, process in running:
        print(f"  {mode} meanwhile: {process.communicate()[0].strip()}")


def _neighbour(store: DiskStore, mode: str, entries: int, stop: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", NEIGHBOUR, store.directory, mode, str(entries), stop],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def revisions(directory: Path) -> None:
    body = read(DOCUMENT) if DOCUMENT.is_file() else document()
    with DiskStore.open(directory / "revisions") as store:
        largest = 0
        for revision in range(50):
            changed = os.urandom(8).hex().encode() + body
            store.put(Key("https://one", "p", "v1", str(revision), "m"), changed, metadata={})
            largest = max(largest, store.stats().bytes_used)
        after = store.compact().bytes_after
    megabytes = f"{largest / 1e6:.1f} MB on disk at most, {after / 1e6:.1f} compacted"
    print(f"50 revisions of {len(body)} bytes: {megabytes}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        rows = {}
        for size in (2000, SIZE):
            rows |= calls_beside_others(Path(name, str(size)), options.rounds, size)
        keep("store", rows)
        revisions(Path(name))
        compaction(Path(name), options.entries)


if __name__ == "__main__":
    main()

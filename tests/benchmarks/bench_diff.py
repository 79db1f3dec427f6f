"""What comparing costs, beside oasdiff: run with ``python tests/benchmarks/bench_diff.py``.

CPU and peak memory of whole processes, start included, alternating, and the library's CPU for one document.
oasdiff is installed from the Go module proxy into a temporary folder, or taken from ``$OASDIFF``; without Go
it is left out with a word. Merged documents are made with ``specmux merge``. Needs the reference data beside
the checkout.
"""

from __future__ import annotations

import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import keep

from shared_data import DATA, documents, load
from specmux_tools.differences import ServedSide, add_document, compare

OASDIFF = "github.com/oasdiff/oasdiff@v1.33.0"
ROUNDS = 3
LIBRARY_ROUNDS = 15
MEMORY_BAR = 150
SPECMUX = (sys.executable, "-m", "specmux_aggregator.cli")
LIBRARY = {"apis/apps/v1": 30.0, "api/v1": 60.0}
"""Milliseconds for one document of 1.29 and of 1.30."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        oasdiff = _oasdiff(folder)
        print(
            f"{'process CPU, s':<34} {'ours':>8} {'MiB':>6} {'oasdiff':>8} {'MiB':>6} {'ratio':>6} {'bar':>6}"
        )
        kept = {
            title: _show(title, bar, ours, theirs if oasdiff else [], oasdiff)
            for title, bar, ours, theirs in _comparisons(folder)
        }
    keep("diff", kept)
    print(f"\n{'library CPU, ms':<34} {'ours':>8} {'bar':>6}")
    for group_version, milliseconds in LIBRARY.items():
        print(f"{group_version + ' 1.29 to 1.30':<34} {_library(group_version):>8.1f} {milliseconds:>6.0f}")


Pairs = list[tuple[Path, Path]]
Pair = tuple[float, float | None]


def _comparisons(folder: Path) -> Iterator[tuple[str, float, tuple[Path, Path], Pairs]]:
    """Title, bar, what we compare, and the pairs of files that oasdiff compares one after the other."""
    for release in ("1.29", "1.30", "1.32", "1.35"):
        for key, file in documents(release).items():
            _unpack(file, folder / release / f"{key}.json")
    apps = [folder / release / "apis/apps/v1.json" for release in ("1.29", "1.30")]
    yield "apps/v1 1.29 to 1.30", 0.5, (apps[0], apps[1]), [(apps[0], apps[1])]
    both = sorted(documents("1.30").keys() & documents("1.32").keys())
    pairs = [(folder / "1.30" / f"{key}.json", folder / "1.32" / f"{key}.json") for key in both]
    yield f"{len(pairs)} documents 1.30 to 1.32", 0.2, (folder / "1.30", folder / "1.32"), pairs
    merged = [folder / f"{release}.json" for release in ("1.32", "1.35")]
    for file in merged:
        command = [*SPECMUX, "merge", str(folder / file.stem), "--output-file", str(file)]
        subprocess.run(command, check=True, capture_output=True)
    yield "merged 1.32 to 1.35", 0.2, (merged[0], merged[1]), [(merged[0], merged[1])]


def _unpack(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    target.write_bytes(gzip.decompress(data) if source.suffix == ".gz" else data)


def _show(title: str, bar: float, ours: tuple[Path, Path], theirs: Pairs, oasdiff: Path | None) -> Pair:
    """Shows a row, and returns our CPU seconds and theirs."""
    mine, peer = [], []
    for _ in range(ROUNDS):
        mine.append(_used([*SPECMUX, "diff", *map(str, ours), "--format", "json"]))
        if oasdiff:
            runs = [
                _used([str(oasdiff), "changelog", "--flatten-allof", "-f", "json", str(old), str(new)])
                for old, new in theirs
            ]
            peer.append((sum(cpu for cpu, _ in runs), max(memory for _, memory in runs)))
    cpu, memory = statistics.median(used for used, _ in mine), max(size for _, size in mine)
    line, other = f"{title:<34} {cpu:>8.2f} {memory:>6.0f}", None
    if peer:
        other, its_memory = statistics.median(used for used, _ in peer), max(size for _, size in peer)
        line += f" {other:>8.2f} {its_memory:>6.0f} {cpu / other:>6.2f} {bar:>6}"
    print(line + (" above the bar" if memory > MEMORY_BAR else ""), flush=True)
    return cpu, other


def _used(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak MiB of one process."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _library(group_version: str) -> float:
    old, new = (load(documents(release)[group_version]) for release in ("1.29", "1.30"))
    times = []
    for _ in range(LIBRARY_ROUNDS):
        start = time.process_time()
        sides = ServedSide(), ServedSide()
        add_document(sides[0], old)
        add_document(sides[1], new)
        compare(*sides)
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times)


def _oasdiff(folder: Path) -> Path | None:
    named = os.environ.get("OASDIFF")
    if named:
        return Path(named)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        print("no Go: oasdiff is left out")
        return None
    environment = {**os.environ, "GOBIN": str(folder / "bin")}
    done = subprocess.run(
        [go, "install", OASDIFF], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"oasdiff is left out: {done.stderr.strip().splitlines()[-1]}")
        return None
    return folder / "bin" / "oasdiff"


if __name__ == "__main__":
    if not DATA.is_dir():
        sys.exit("no reference data beside the checkout")
    main()

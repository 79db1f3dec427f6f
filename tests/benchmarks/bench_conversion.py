"""What converting Swagger 2.0 costs: run with ``python tests/benchmarks/bench_conversion.py``.

Process CPU, medians of several rounds after a few that warm up (a JIT, an allocator, CPython's inline
caches), from bytes to the JSON bytes of all documents. Peers run so, too, on the same files in the same
minutes: swagger2openapi (npm, in a temporary folder) and kube-openapi's openapiconv (Go, which does not
split and leaves references dangling). A peer whose toolchain is absent is left out with a word. Needs the
reference data beside the checkout.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson
from figures import IS_MADE, keep

from shared_data import DATA, read
from specmux_converters import convert, parse
from specmux_converters.document import content_hash

ROUNDS = 21
WARMING = 4
HERE = Path(__file__).resolve().parent
CORE = "core 1.04 MB"
WHOLE = "1.35 3.85 MB"
SOURCES = {
    CORE: DATA / "kube-openapi-vectors/openapiconv/v2_api.v1.json.gz",
    WHOLE: DATA / "k8s-pairs/1.35/v2/swagger.json.gz",
}
PEERS = {"openapiconv": "go", "swagger2openapi": "npm"}
BARS = {CORE: 12.0, WHOLE: 100.0}
MEMORY_BAR = 120.0

PEAK = """
import re, sys
from specmux_converters import convert, parse
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before = peak()
data = open(sys.argv[1], "rb").read()
conversion = convert(parse(data))
made = [conversion.json(key) for key in conversion.documents]
print(peak() - before)
"""
"""MiB above the interpreter with its imports (Linux); the input and all output are held at once."""

SWAGGER2OPENAPI = """
const fs = require('fs'), converter = require('swagger2openapi');
(async () => {
  const [rounds, ...paths] = process.argv.slice(2), times = {};
  for (const path of paths) {
    times[path] = [];
    const data = fs.readFileSync(path, 'utf8');
    for (let round = 0; round < +rounds; round++) {
      const start = process.cpuUsage();
      const options = {patch: true, warnOnly: true, resolve: false};
      const made = await converter.convertObj(JSON.parse(data), options);
      JSON.stringify(made.openapi);
      const used = process.cpuUsage(start);
      times[path].push((used.user + used.system) * 1000);
    }
  }
  console.log(JSON.stringify(times));
})();
"""


def main() -> None:
    data = {name: read(path) for name, path in SOURCES.items()}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{index}.json" for index, name in enumerate(data)}
        for name, path in paths.items():
            path.write_bytes(data[name])
        peers = dict(_peers(Path(folder), list(paths.values())))
        kept = {}
        for name, body in data.items():
            ours = milliseconds(lambda body=body: converted(body))
            row(f"{name} -> all documents, cold", ours, BARS[name])
            for label, times in peers.items():
                theirs = times[paths[name]]
                print(f"    {label}: {theirs:8.1f} ms, {theirs / ours:5.1f} times ours")
            found = (peers[label][paths[name]] if label in peers else None for label in PEERS)
            kept[f"{name}, cold"] = (ours, *found)
        keep("conversion", kept)
        row(f"{WHOLE}, hashes of all documents (beside)", hashing(data[WHOLE]))
        row(f"{WHOLE}, parse alone (part of the above)", milliseconds(lambda: parse(data[WHOLE])))
        row(
            f"{WHOLE}, orjson.loads alone (the machine's yardstick)",
            milliseconds(lambda: orjson.loads(data[WHOLE])),
        )
        peak = subprocess.run(
            [sys.executable, "-c", PEAK, str(paths[WHOLE])], capture_output=True, check=True
        )
        row(f"{WHOLE}, peak memory above the interpreter's", float(peak.stdout), MEMORY_BAR, unit="MiB")


def converted(data: bytes) -> list[bytes]:
    conversion = convert(data)
    return [conversion.json(key) for key in conversion.documents]


def hashing(data: bytes) -> float:
    bodies = converted(data)
    return milliseconds(lambda: [content_hash(body) for body in bodies])


def milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(WARMING + ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times[WARMING:]) * 1000


def row(name: str, value: float, bar: float | None = None, *, unit: str = "ms") -> None:
    verdict = (
        "" if bar is None or IS_MADE else f"  bar {bar:.0f} {unit}: {'met' if value <= bar else 'MISSED'}"
    )
    print(f"{name:62} {value:8.1f} {unit}{verdict}")


def _peers(folder: Path, paths: list[Path]) -> Iterator[tuple[str, dict[Path, float]]]:
    for (label, tool), prepare in zip(PEERS.items(), (_go, _node), strict=True):
        if shutil.which(tool) is None:
            print(f"({label} left out: no {tool})")
            continue
        try:
            command = prepare(folder)
            arguments = [*command, str(WARMING + ROUNDS), *map(str, paths)]
            answer = subprocess.run(arguments, cwd=folder, capture_output=True, check=True, timeout=600)
        except subprocess.SubprocessError as error:
            print(f"({label} left out: {error})")
            continue
        times = json.loads(answer.stdout)
        yield label, {path: statistics.median(times[str(path)][WARMING:]) / 1e6 for path in paths}


def _go(folder: Path) -> list[str]:
    program = str(folder / "convert")
    command = ["go", "build", "-o", program, "./convert"]
    subprocess.run(command, cwd=HERE / "go", check=True, timeout=600, capture_output=True)
    return [program]


def _node(folder: Path) -> list[str]:
    (folder / "convert.js").write_text(SWAGGER2OPENAPI)
    command = [
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(folder),
        "swagger2openapi@7",
    ]
    subprocess.run(command, check=True, timeout=600, capture_output=True)
    return ["node", str(folder / "convert.js")]


if __name__ == "__main__":
    if not DATA.is_dir():
        sys.exit("no reference data beside the checkout")
    main()

"""What the first client of a hash costs, beside Go's reverse proxy.

Run with ``python tests/benchmarks/bench_first_fetch.py``. A backend (a specmux that serves files, for its
speed) offers 400 documents of 50 KB, all different, then 40 of 1.47 MB. Each is asked for once through a
specmux in front of it, through a Go program that is nothing but the standard library's reverse proxy, and
through the least that does this in Python (``bare_document_proxy.py``), in turns, so that whatever else the
machine does falls on all of them. Printed is the CPU of the process in front, all its threads, per document.
Then the same again from the service, where every answer is stored by now. "Later" is what the service does of
itself after the first.

The bars are ratios to the least in Python: those to Go's proxy differ from machine to machine by what SHA-512
and Python cost beside the kernel.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson
from figures import keep

from running.process import Process, specmux, write_documents

ROUNDS = 3
TURNS = 10
"""Parts of the documents, each asked of one after the other."""
STILL = 3.0
"""Seconds in which a process without work takes less than a hundredth of them."""
AFTERWARDS = 4.0
"""Seconds within which the change log copies what was fetched; in as many more nothing is done."""
SIZES = {"50 KB": (400, 60), "1.47 MB": (40, 1790)}
"""How many documents, and the kinds in each."""
HERE = Path(__file__).resolve().parent
BARE = HERE / "bare_document_proxy.py"


def made_document(number: int, kinds: int) -> bytes:
    """OpenAPI v3 unlike any other number's, 820 bytes for each kind."""
    key = f"apis/g{number}.example.com/v1"
    schemas = {
        f"com.example.g{number}.v1.Kind{index}": {
            "description": f"Kind{index} of group {number}, described at the length that Kubernetes likes.",
            "type": "object",
            "properties": {
                name: {"description": f"{name} of Kind{index}, which somebody may set.", "type": "string"}
                for name in ("apiVersion", "kind", "name", "color", "size", "weight", "origin", "purpose")
            },
        }
        for index in range(kinds)
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "bench", "version": str(number)},
        "paths": {f"/{key}/things": {"get": {"responses": {"200": {"description": "OK"}}}}},
        "components": {"schemas": schemas},
    }
    return orjson.dumps(document)


def cpu_microseconds(pid: int) -> float:
    """All threads of a process: /proc/<pid>/schedstat is the first thread's alone."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3


def ask_all(port: int, targets: list[str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for target in targets:
        connection.request(
            "GET", target, headers={"Accept": "application/json", "Accept-Encoding": "identity"}
        )
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, (response.status, target)
        assert len(body) > 20_000
    connection.close()


def measured(pid: int, port: int, targets: list[str]) -> float:
    before = cpu_microseconds(pid)
    ask_all(port, targets)
    return (cpu_microseconds(pid) - before) / len(targets)


def until_still(pid: int) -> None:
    """Waits until a process has done what its start leaves it to do."""
    for _ in range(20):
        if taken(pid, STILL) < 10_000 * STILL:
            break


def taken(pid: int, seconds: float) -> float:
    """CPU microseconds of a process that nobody asks."""
    before = cpu_microseconds(pid)
    time.sleep(seconds)
    return cpu_microseconds(pid) - before


@contextmanager
def go_proxy(backend: Process) -> Iterator[tuple[int, int] | None]:
    """(pid, port) of the Go program; None where there is no toolchain."""
    if shutil.which("go") is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "proxy"
        subprocess.run(["go", "build", "-o", str(binary), "./proxy"], cwd=HERE / "go", check=True)
        with program(str(binary), f"http://127.0.0.1:{backend.port}") as started:
            yield started


@contextmanager
def program(*arguments: str) -> Iterator[tuple[int, int]]:
    """(pid, port) of a program that prints its port."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def main() -> None:
    figures: dict[str, tuple[float | None, ...]] = {}
    for label, (count, kinds) in SIZES.items():
        documents = {
            f"apis/g{number}.example.com/v1": made_document(number, kinds) for number in range(count)
        }
        size = statistics.mean(map(len, documents.values())) / 1000
        rows = rounds(documents)
        print(f"{count} documents of {size:.0f} KB, {ROUNDS} rounds, CPU of the process in front per request")
        medians = {row: statistics.median(values) for row, values in rows.items() if values}
        go, bare = medians.get("Go reverse proxy"), medians["bare, first"]
        if go is None:
            print("no Go toolchain on this machine: no such peer")
        for row, median in medians.items():
            ratios = f"{median / bare:5.2f} of bare" + (f"   {median / go:5.2f} of Go" if go else "")
            print(f"  {row:<18} {median:6.0f} µs   {ratios}   ({min(rows[row]):.0f}-{max(rows[row]):.0f})")
        figures[f"first fetch, {label}"] = medians["specmux, first"], bare, go
        figures[f"every later one, {label}"] = medians["specmux, stored"], None, go
        figures[f"afterwards, {label}"] = medians["specmux, later"], None, None
    keep("first_fetch", figures)


def rounds(documents: dict[str, bytes]) -> dict[str, list[float]]:
    """CPU microseconds per document, by who is in front."""
    rows: dict[str, list[float]] = {
        name: []
        for name in ("Go reverse proxy", "bare, first", "specmux, first", "specmux, later", "specmux, stored")
    }
    with tempfile.TemporaryDirectory() as name:
        folder = write_documents(Path(name), documents)
        with specmux("serve", "--directory", str(folder), "--listen-port", "0") as backend:
            backend.until_ready()
            targets = list(backend.paths().values())
            ask_all(backend.port, targets)
            with go_proxy(backend) as go:
                for _ in range(ROUNDS):
                    with specmux(
                        "serve", "--backend", f"native=http://127.0.0.1:{backend.port}", "--listen-port", "0"
                    ) as front:
                        front.until_ready()
                        until_still(front.pid)
                        ours = front.pid, front.port
                        with program(sys.executable, str(BARE), str(backend.port)) as bare:
                            fronts = {"Go reverse proxy": go, "bare, first": bare, "specmux, first": ours}
                            for turn in range(TURNS):
                                for row, asked in fronts.items():
                                    if asked is not None:
                                        rows[row].append(measured(*asked, targets[turn::TURNS]))
                        busy, still = taken(front.pid, AFTERWARDS), taken(front.pid, AFTERWARDS)
                        rows["specmux, later"].append((busy - still) / len(targets))
                        for turn in range(TURNS):
                            rows["specmux, stored"].append(measured(*ours, targets[turn::TURNS]))
    return rows


if __name__ == "__main__":
    main()

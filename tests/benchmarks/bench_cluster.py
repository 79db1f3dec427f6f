"""A cluster with many CustomResourceDefinitions: how soon all are served, and a changed one is published.

    .venv/bin/python tests/benchmarks/bench_cluster.py [--definitions 100 300 1000] [--changes 20]

The service is a process of its own, in front of the tests' cluster over real sockets; a change counts as
published when a client sees its hash in the root. Memory and CPU are the whole process tree's, from /proc.
Synthetic definitions: two of a group, 60 described fields each, 33 kB with their managed fields. "real" are
those of the reference data, where that is.

"In a burst" puts all of them into an empty cluster at once, while a process beside asks for /livez.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import keep  # noqa: E402

from fakes.cluster import CRDS, FakeCluster  # noqa: E402
from running.process import Process, specmux  # noqa: E402
from shared_data import DATA, read  # noqa: E402
from specmux_converters.errors import ConverterError  # noqa: E402
from specmux_converters.recognise import DocumentKind, recognise  # noqa: E402

ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}

PROBE = """
import http.client, sys, time
connection, taken = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30), []
while time.time() < float(sys.argv[2]):
    started = time.perf_counter()
    connection.request("GET", "/livez")
    connection.getresponse().read()
    taken.append(time.perf_counter() - started)
    time.sleep(0.002)
taken.sort()
print(*(round(taken[int(len(taken) * share)] * 1000, 1) for share in (0.5, 0.99, 0.99999)))
"""
"""A client of its own process: how long /livez takes, in ms."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--definitions", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--changes", type=int, default=20)
    options = parser.parse_args()
    sets = {str(count): [definition(number) for number in range(count)] for count in options.definitions}
    print(
        "definitions  ready s  CPU s  RSS MiB  published ms: median  9 in 10"
        "  CPU ms of a change: median  mean"
    )
    kept = {}
    for name, found in [*sets.items(), ("real", real())]:
        if found:
            kept[f"{name} definitions"] = asyncio.run(before_the_start(name, found, options.changes))
    keep("cluster", kept)
    print("\nin a burst   first s  all s  CPU s  /livez ms: median  99 in 100  longest")
    for name, found in sets.items():
        asyncio.run(in_a_burst(name, found))


def real() -> list[dict[str, Any]]:
    """The definitions of the reference data; of one that is there twice the larger."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((DATA / "crds").rglob("*.yaml*")):
        try:
            recognised = recognise(read(path))
        except ConverterError:
            continue
        for item in recognised.documents if recognised.kind is DocumentKind.CRDS else ():
            name = item["metadata"]["name"]
            if len(orjson.dumps(item)) > len(orjson.dumps(found.get(name, {}))):
                found[name] = {**item, "status": ESTABLISHED}
    return list(found.values())


async def before_the_start(
    name: str, definitions: Sequence[dict[str, Any]], changes: int
) -> tuple[float, ...]:
    """Shows a row, and returns the seconds until all are served, and the CPU seconds until then."""
    measured: list[float] = []

    async with FakeCluster({}) as cluster:
        for item in definitions:
            cluster.put(CRDS, item)
        loop = asyncio.get_running_loop()

        def follow(process: Process, started: float) -> None:
            process.until_ready()
            ready, cpu, memory = time.monotonic() - started, *usage(process)
            measured.extend((ready, cpu))
            time.sleep(1.0)
            waits, costs = [], []
            for number in range(changes):
                before, _ = usage(process)
                item = changed(definitions[number * 7 % len(definitions)], number)
                job = published(cluster, process.port, item)
                waits.append(asyncio.run_coroutine_threadsafe(job, loop).result(60))
                time.sleep(0.3)
                costs.append(usage(process)[0] - before)
            waits.sort()
            print(
                f"{name:>11}  {ready:7.2f}  {cpu:5.2f}  {memory / 2**20:7.0f}"
                f"  {statistics.median(waits) * 1000:20.0f}  {waits[int(len(waits) * 0.9)] * 1000:7.0f}"
                f"  {statistics.median(costs) * 1000:26.0f}  {statistics.mean(costs) * 1000:4.0f}",
                flush=True,
            )

        await asyncio.to_thread(served, cluster, follow)
    return tuple(measured)


async def in_a_burst(name: str, definitions: Sequence[dict[str, Any]]) -> None:
    async with FakeCluster({}) as cluster:
        loop = asyncio.get_running_loop()
        groups = {item["spec"]["group"] for item in definitions}

        def put() -> None:
            for item in definitions:
                cluster.put(CRDS, item)

        def follow(process: Process, _: float) -> None:
            process.until_ready()
            cpu, _ = usage(process)
            until = time.time() + 3 + len(definitions) / 100
            command = [sys.executable, "-c", PROBE, str(process.port), str(until)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as probe:
                time.sleep(1.0)
                started, first = time.monotonic(), 0.0
                loop.call_soon_threadsafe(put)
                while (count := len(process.paths())) < len(groups):
                    first = first or (time.monotonic() - started if count else 0.0)
                    time.sleep(0.05)
                every = time.monotonic() - started
                assert probe.stdout is not None
                lags = probe.stdout.read().split()
            print(
                f"{name:>10}  {first or every:8.2f}  {every:5.2f}  {usage(process)[0] - cpu:5.2f}"
                f"  {lags[0]:>17}  {lags[1]:>9}  {lags[2]:>7}",
                flush=True,
            )

        await asyncio.to_thread(served, cluster, follow)


def served(cluster: FakeCluster, follow: Callable[[Process, float], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = cluster.kubeconfig(Path(folder))
        started = time.monotonic()
        with specmux("serve", "--kubeconfig", str(config), "--listen-port", "0") as process:
            follow(process, started)
            process.stop()


async def published(cluster: FakeCluster, port: int, item: dict[str, Any]) -> float:
    """Seconds until a client sees the change."""
    version = next(version["name"] for version in item["spec"]["versions"] if version["served"])
    key = f"apis/{item['spec']['group']}/{version}"
    async with aiohttp.ClientSession() as session:

        async def url() -> str:
            async with session.get(f"http://127.0.0.1:{port}/openapi/v3") as response:
                found = orjson.loads(await response.read())["paths"][key]
                return str(found["serverRelativeURL"])

        before = await url()
        started = time.monotonic()
        cluster.put(CRDS, item)
        while await url() == before:
            await asyncio.sleep(0.005)
        return time.monotonic() - started


def changed(item: dict[str, Any], number: int) -> dict[str, Any]:
    made = copy.deepcopy(item)
    for version in made["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["description"] = f"change {number}"
    return made


def definition(number: int) -> dict[str, Any]:
    plural, group = f"kind{number}s", f"g{number // 2}.example.com"
    fields = {f"field{index}": {"type": "string", "description": "A field. " * 15} for index in range(60)}
    schema = {"type": "object", "properties": fields}
    return {
        "metadata": {"name": f"{plural}.{group}", "managedFields": [{"fieldsV1": fields}]},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": f"Kind{number}", "plural": plural},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
        "status": ESTABLISHED,
    }


def usage(process: Process) -> tuple[float, int]:
    """CPU seconds and resident bytes of the process and all that it started."""
    tree = {process.pid}
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stats[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
    while more := {pid for pid, fields in stats.items() if int(fields[1]) in tree} - tree:
        tree |= more
    pages = sum(int(stats[pid][21]) for pid in tree if pid in stats)
    return sum(map(cpu_seconds, tree)), pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """Of all threads that live: finer than the hundredths of a second in their process's stat."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except OSError:
            continue
    return total / 1e9


if __name__ == "__main__":
    main()

"""A cluster with many CustomResourceDefinitions: how soon all are served, and a changed one is published.

    .venv/bin/python tests/benchmarks/bench_cluster.py [--definitions 100 300 1000] [--changes 20]

The service is a process of its own, in front of the tests' cluster over real sockets; a change counts as
published when a client sees its hash in the root. Memory and CPU are the whole process tree's, from /proc.
The definitions are synthetic: two of a group, 60 described fields each, 33 kB with their managed fields.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from fake_cluster import CRDS, FakeCluster  # noqa: E402
from running_process import Process, specmux  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--definitions", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--changes", type=int, default=20)
    options = parser.parse_args()
    print("definitions  ready s  CPU s  RSS MiB  published ms: median  9 in 10  CPU ms of a change")
    for count in options.definitions:
        asyncio.run(measured(count, options.changes))


async def measured(count: int, changes: int) -> None:
    async with FakeCluster({}) as cluster:
        for number in range(count):
            cluster.put(CRDS, definition(number))
        with tempfile.TemporaryDirectory() as folder:
            config = cluster.kubeconfig(Path(folder))
            await asyncio.to_thread(followed, cluster, config, count, changes, asyncio.get_running_loop())


def followed(
    cluster: FakeCluster, config: Path, count: int, changes: int, loop: asyncio.AbstractEventLoop
) -> None:
    started = time.monotonic()
    with specmux("serve", "--kubeconfig", str(config), "--listen-port", "0") as process:
        process.until_ready()
        ready, cpu, memory = time.monotonic() - started, *usage(process)
        time.sleep(1.0)
        before, _ = usage(process)
        waits = []
        for number in range(changes):
            job = published(cluster, process.port, number % count, f"change {number}")
            waits.append(asyncio.run_coroutine_threadsafe(job, loop).result(60))
            time.sleep(0.2)
        cost = (usage(process)[0] - before) / changes
        process.stop()
    waits.sort()
    print(
        f"{count:11}  {ready:7.2f}  {cpu:5.2f}  {memory / 2**20:7.0f}"
        f"  {statistics.median(waits) * 1000:20.0f}  {waits[int(len(waits) * 0.9)] * 1000:7.0f}"
        f"  {cost * 1000:18.0f}"
    )


async def published(cluster: FakeCluster, port: int, number: int, description: str) -> float:
    """Seconds until a client sees the change."""
    key = f"apis/g{number // 2}.example.com/v1"
    async with aiohttp.ClientSession() as session:

        async def url() -> str:
            async with session.get(f"http://127.0.0.1:{port}/openapi/v3") as response:
                found = orjson.loads(await response.read())["paths"][key]
                return str(found["serverRelativeURL"])

        before = await url()
        changed = definition(number, description)
        started = time.monotonic()
        cluster.put(CRDS, changed)
        while await url() == before:
            await asyncio.sleep(0.005)
        return time.monotonic() - started


def definition(number: int, description: str = "") -> dict[str, Any]:
    plural, group = f"kind{number}s", f"g{number // 2}.example.com"
    fields = {f"field{index}": {"type": "string", "description": "A field. " * 15} for index in range(60)}
    schema = {"type": "object", "description": description, "properties": fields}
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
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def usage(process: Process) -> tuple[float, int]:
    """CPU seconds and resident bytes of the process and all that it started."""
    tree = {process.pid}
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            stats[int(entry.name)] = fields
    while True:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in tree} - tree
        if not more:
            break
        tree |= more
    ticks = sum(int(stats[pid][11]) + int(stats[pid][12]) for pid in tree if pid in stats)
    pages = sum(int(stats[pid][21]) for pid in tree if pid in stats)
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()

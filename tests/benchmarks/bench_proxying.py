"""What a request that is passed on costs, next to the same request sent to the backend itself, in one run.

    .venv/bin/python tests/benchmarks/bench_proxying.py

``specmux`` is a process of its own; backend and client share this one, so that latencies say what the way
through us adds, and rates what the three reach together on one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import keep

from fakes.streaming_backend import Seen, StreamingBackend, streaming
from running.process import Process, specmux
from running.wire_client import WireClient, connected

KEY = "apis/apps/v1"
THINGS = f"/{KEY}/namespaces/a/things"
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024
LARGE = 256 * 2**20
PIECE = b"x" * 2**18


async def answer(seen: Seen) -> None:
    if seen.target.endswith("large"):
        await seen.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
        for _ in range(LARGE // len(PIECE)):
            await seen.write(PIECE)
    elif seen.target.endswith("watch=true"):
        await seen.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await seen.wait_until_left()
    else:
        await seen.write(SMALL)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def small(wire: WireClient, count: int) -> list[float]:
    """Microseconds of each request."""
    took = []
    for _ in range(count):
        started = time.perf_counter()
        await wire.ask(THINGS)
        await wire.answer()
        took.append((time.perf_counter() - started) * 1e6)
    return took


async def large(wire: WireClient, pid: int) -> tuple[float, float]:
    """MiB per second, and the most MiB that the service had resident."""
    started, read, peak = time.perf_counter(), 0, 0.0
    await wire.ask(f"{THINGS}/large")
    await wire.head()
    while read < LARGE:
        read += len(await wire.reader.read(2**20))
        peak = max(peak, resident_mib(pid))
    return LARGE / 2**20 / (time.perf_counter() - started), peak


async def watches(base: str, backend: StreamingBackend, pid: int, count: int) -> None:
    before = resident_mib(pid)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(count):
            wire = await stack.enter_async_context(connected(base))
            await wire.ask(f"{THINGS}?watch=true")
            await wire.head()
            await wire.chunk()
        grown = resident_mib(pid) - before
        used = cpu_seconds(pid)
        await asyncio.sleep(5)
        idle = (cpu_seconds(pid) - used) / 5
    left = time.perf_counter()
    for seen in backend.requests:
        if seen.target.endswith("watch=true"):
            await seen.left.wait()
    gone = time.perf_counter() - left
    print(
        f"{count} quiet watches: {grown * 1024 / count:.0f} KiB each, {idle:.1%} CPU;"
        f" all clients gone: backends free after {gone:.2f} s"
    )


async def measure(backend: StreamingBackend, process: Process, count: int) -> None:
    base, pid = f"http://127.0.0.1:{process.port}", process.pid
    async with connected(base) as wire:
        status = 0
        while status != 200:
            await asyncio.sleep(0.05)
            await wire.ask(f"/openapi/v3/{KEY}")
            status = (await wire.answer())[0].status
    medians = {}
    for name, url in (("direct", backend.url), ("through specmux", base)):
        async with connected(url) as wire:
            await small(wire, count // 10)
            used = cpu_seconds(pid)
            took = sorted(await small(wire, count))
            used = (cpu_seconds(pid) - used) / count * 1e6
            middle, late = statistics.median(took), took[len(took) * 99 // 100]
            print(f"{name}: 1 KiB p50 {middle:.0f} µs, p99 {late:.0f} µs, service CPU {used:.0f} µs each")
            medians[name] = middle
            before = resident_mib(pid)
            rate, peak = await large(wire, pid)
            print(f"{name}: 256 MiB at {rate:.0f} MiB/s, service RSS +{max(peak - before, 0):.1f} MiB")
    keep("proxying", {"GET of 1 KiB": (medians["through specmux"], medians["direct"])})
    await watches(base, backend, pid, 1000)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=3000)
    arguments = parser.parse_args()
    async with streaming(StreamingBackend(script=answer)) as backend:
        flags = ("--backend", f"a={backend.url}", "--proxy-resources", "--listen-port", "0")
        with specmux("serve", *flags) as process:
            await asyncio.to_thread(lambda: process.port)
            await measure(backend, process, arguments.requests)


if __name__ == "__main__":
    asyncio.run(main())

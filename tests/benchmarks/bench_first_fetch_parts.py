"""What the first fetch of a document is made of: the exchange with its backend, the hash, and what any
service pays that keeps a document and sends it on.

Run with ``python tests/benchmarks/bench_first_fetch_parts.py``. One client in this process asks a backend in
another for 50 KB and for 1.47 MB again and again: through asyncio's streams with nothing around them, through
a session of aiohttp, and as the service does. Printed is this process's CPU for one document, with a turn of
the event loop and the way to a thread and back; and beside it, without a loop, the SHA-512 that nothing goes
out unchecked without, memory for a body that nothing used before, and the body's way into a socket that
somebody else reads.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp
from bench_first_fetch import SIZES, made_document

from running.process import specmux, write_documents
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.client import BackendClient, Payload
from specmux_converters.group_versions import GroupVersion

NAME = GroupVersion("apis/g1.example.com/v1")
ROUNDS = 7
FIELDS = {"Accept": "application/json", "Accept-Encoding": "identity"}

Ask = Callable[[], Awaitable[bytes]]


async def costs_of(ways: dict[str, Ask], size: int, count: int) -> dict[str, float]:
    """CPU microseconds of one request, by turns, medians of the rounds. Bodies are kept, as the service does:
    memory that nothing used before has to be made."""
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, ask in ways.items():
            before = time.process_time()
            kept = [await ask() for _ in range(count)]
            costs[name].append((time.process_time() - before) / count * 1e6)
            assert {len(body) for body in kept} == {size}
    return {name: statistics.median(values) for name, values in costs.items()}


async def exchanges(url: str, target: str, size: int, count: int) -> dict[str, float]:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
    head = "".join(f"{name}: {value}\r\n" for name, value in FIELDS.items())
    request = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{head}\r\n".encode()

    async def by_streams() -> bytes:
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(size)

    client = BackendClient(
        Backend(name=BackendName("b"), url=url), polling=PollingSettings(), limits=LimitSettings()
    )
    hash = Hash(target.rpartition("=")[2])

    async def as_documents() -> bytes:
        answer = await client.document(NAME, hash=hash, accept_gzip=False)
        assert isinstance(answer, Payload), answer
        return answer.body

    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def by_session() -> bytes:
            async with session.get(url + target, headers=FIELDS) as response:
                return await response.read()

        ways: dict[str, Ask] = {
            "asyncio's streams alone": by_streams,
            "a session of aiohttp": by_session,
            "as the service asks": as_documents,
        }
        costs = await costs_of(ways, size, count)
    await client.close()
    writer.close()
    return costs


def hash_cost(body: bytes, count: int) -> float:
    took = []
    for _ in range(count):
        before = time.thread_time()
        hashlib.sha512(body).hexdigest()
        took.append((time.thread_time() - before) * 1e6)
    return statistics.median(took)


def memory_cost(size: int, count: int) -> float:
    """Of pages that are written to for the first time, with what writing to them takes."""
    kept, took = [], []
    for _ in range(count):
        before = time.thread_time()
        kept.append(b"x" * size)
        took.append((time.thread_time() - before) * 1e6)
    return statistics.median(took)


def sending_cost(body: bytes, count: int) -> float:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        drops = f"import socket\ns = socket.create_connection({address!r})\nwhile s.recv(1 << 18): pass"
        with subprocess.Popen([sys.executable, "-c", drops]) as reader:
            wire, _ = listener.accept()
            with wire:
                took = []
                for _ in range(count):
                    before = time.thread_time()
                    wire.sendall(body)
                    took.append((time.thread_time() - before) * 1e6)
                    time.sleep(0.002)
            reader.wait(10)
    return statistics.median(took)


async def loop_costs() -> dict[str, float]:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, int)

    async def cost_of(step: Callable[[], Awaitable[object]], count: int) -> float:
        before = time.process_time()
        for _ in range(count):
            await step()
        return (time.process_time() - before) / count * 1e6

    return {
        "a turn of the loop": await cost_of(lambda: asyncio.sleep(0), 5_000),
        "to a thread and back": await cost_of(lambda: loop.run_in_executor(None, int), 1_000),
    }


def main() -> None:
    for label, (count, kinds) in SIZES.items():
        body = made_document(1, kinds)
        with tempfile.TemporaryDirectory() as name:
            folder = write_documents(Path(name), {NAME: body})
            with specmux("serve", "--directory", str(folder), "--listen-port", "0") as backend:
                backend.until_ready()
                url, target = f"http://127.0.0.1:{backend.port}", backend.paths()[NAME]
                print(
                    f"{label}: SHA-512 {hash_cost(body, count):.0f} µs,",
                    f"fresh memory {memory_cost(len(body), count):.0f} µs,",
                    f"sending {sending_cost(body, count):.0f} µs",
                )
                costs = asyncio.run(exchanges(url, target, len(body), count)) | asyncio.run(loop_costs())
                print(*(f"{way} {took:.0f} µs" for way, took in costs.items()), sep="   ")


if __name__ == "__main__":
    main()

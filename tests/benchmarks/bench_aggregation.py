"""What aggregation costs the service: run with ``python tests/benchmarks/bench_aggregation.py``.

Rows: the event loop's lag while a 3.85 MB Swagger 2.0 document arrives under load, the root's latency
meanwhile, the CPU of taking in the 36 documents of a release in all forms, the first fetch of a native
document, and the memory that all of it holds. Needs the reference data beside the checkout, and wrk for the
load.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp
import orjson
from figures import keep

from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from running.process import write_documents
from running.service import backend, directory, service
from shared_data import DATA, documents, read
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.http.messages import Coding, Request
from specmux_aggregator.http.negotiation import MEDIA_TYPES
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.server.protocols import Pending

RELEASE = "1.35"
CLIENTS = 64
CHANGES = 5


def native_documents() -> dict[str, bytes]:
    """The documents as an apiserver sends them: without white space."""
    return {key: orjson.dumps(orjson.loads(read(path))) for key, path in documents(RELEASE).items()}


def cpu_seconds() -> float:
    """Of this process and of its workers that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used (Linux); 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        return 0.0


def workers() -> list[int]:
    """Processes below this one, at any depth."""
    found, parents = [], {os.getpid()}
    listing = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in listing.splitlines()[1:]]
    for _ in range(4):
        for pid, parent in rows:
            if parent in parents and pid not in parents:
                parents.add(pid)
                found.append(pid)
    return found


async def lag(samples: list[float], stop: asyncio.Event) -> None:
    """How late a timer of 1 ms fires, in seconds."""
    while not stop.is_set():
        due = time.perf_counter() + 0.001
        await asyncio.sleep(0.001)
        samples.append(time.perf_counter() - due)


def start_load(url: str, seconds: int) -> subprocess.Popen[str]:
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--latency", url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def p99_of(load: subprocess.Popen[str]) -> str:
    output, _ = load.communicate(timeout=60)
    return next((line.split()[1] for line in output.splitlines() if line.strip().startswith("99%")), "?")


async def lag_while_converting() -> None:
    swagger = read(DATA / "k8s-pairs" / RELEASE / "v2" / "swagger.json.gz")
    polling = PollingSettings(interval=0.2)
    with separate_server(swagger) as (url, change):
        async with service(backend("old", url, kind=BackendKind.V2), polling=polling) as client:
            await client.ready()
            await client.get("/openapi/v3")
            stop, samples = asyncio.Event(), []
            probe = asyncio.create_task(lag(samples, stop))
            load = start_load(client.base + "/openapi/v3", 4)
            await asyncio.sleep(4.5)
            idle, idle_p99 = list(samples), p99_of(load)
            samples.clear()
            load = start_load(client.base + "/openapi/v3", 5)
            await asyncio.sleep(0.5)
            changes = 0
            for _ in range(CHANGES):
                generation = client.app.publisher.current.generation
                change()
                await client.until(
                    lambda before=generation: client.app.publisher.current.generation > before  # type: ignore[misc]
                )
                changes += 1
            await asyncio.sleep(2.5)
            busy, busy_p99 = list(samples), p99_of(load)
            stop.set()
            await probe
    for name, found, p99 in (("load alone", idle, idle_p99), (f"with {changes} conversions", busy, busy_p99)):
        found.sort()
        median, late, worst = (
            value * 1e3 for value in (statistics.median(found), found[int(len(found) * 0.99)], found[-1])
        )
        print(
            f"  {name:<22} lag p50 {median:6.2f} ms   p99 {late:6.2f} ms   max {worst:6.2f} ms"
            f"   root p99 {p99}"
        )


@contextmanager
def separate_server(swagger: bytes) -> Iterator[tuple[str, Callable[[], None]]]:
    """A v2-only apiserver in a process of its own; the function changes its document a little."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "swagger.json"
        path.write_bytes(swagger)
        process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        port = int(process.stdout.readline())

        # Made now: the measurement runs in this process, and must not measure this.
        changed = [
            changed_document(swagger, Path(folder) / f"{number}.json", number) for number in range(CHANGES)
        ]

        def change() -> None:
            changed.pop().rename(path)

        try:
            yield f"http://127.0.0.1:{port}", change
        finally:
            process.kill()
            process.wait()


def changed_document(swagger: bytes, path: Path, number: int) -> Path:
    document = orjson.loads(swagger)
    for definition in list(document["definitions"].values())[: 1 + number]:
        definition["description"] = f"changed {number}"
    path.write_bytes(orjson.dumps(document))
    return path


def serve_file(path: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/openapi/v2":
                self.send_error(404)
                return
            body = path.read_bytes()
            etag = f'"{hash_of(body)[:32]}"'
            fresh = self.headers.get("If-None-Match") == etag
            self.send_response(304 if fresh else 200)
            self.send_header("ETag", etag)
            if not fresh:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not fresh:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Timer(120, server.shutdown).start()
    server.serve_forever()


async def ingest() -> None:
    """From files to every form, by the service's own calls. The worker processes run already: they are
    started once, and what it costs to take in a release should not depend on when it comes.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, release = Path(name) / "served", Path(name) / "release"
        write_documents(release, native_documents())
        write_documents(folder, {"apis/warm.example.com/v1": document("apis/warm.example.com/v1")})
        async with service(directory("release", folder)) as client:
            await client.ready()
            await client.get("/openapi/v3/apis/warm.example.com/v1", Accept=PROTOBUF)
            answer, published = client.app.service, client.app.publisher
            before = cpu_seconds() + sum(map(cpu_of, workers()))
            release.rename(folder / "release")
            await client.until(lambda: len(published.current.entries) == 37)
            built = cpu_seconds() + sum(map(cpu_of, workers())) - before
            forms = 0
            for entry in list(published.current.entries.values()):
                for accept in MEDIA_TYPES:
                    for coding in Coding:
                        path = f"/openapi/v3/{entry.group_version}"
                        reply = await answer.respond(
                            Pending(Request("GET", path, f"hash={entry.offer.hash}", accept, coding.value))
                        )
                        assert reply.status == 200
                        forms += 1
            spent = cpu_seconds() + sum(map(cpu_of, workers())) - before
            usage = answer._representations.usage()
        print(f"  36 documents read, checked, hashed, compressed and published: {built:.2f} s CPU")
        print(f"  all {forms} forms of them made: {spent:.2f} s CPU in all, {usage.bytes / 2**20:.1f} MiB")
        keep("aggregation", {"36 documents, published": (built,), "the same, and all their forms": (spent,)})


PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"


async def first_fetch() -> None:
    """Each document once through the proxy, and once more from memory; the backend is in this process too."""
    by_size = sorted(native_documents().items(), key=lambda item: abs(len(item[1]) - 50_000))
    found = dict(by_size[:6])
    origin = FakeAPIServer(found)
    async with serving(origin), service(backend("native", origin.url)) as client:
        await client.ready()
        paths = await client.paths()
        timings: dict[str, list[float]] = {"straight from the backend": [], "first": [], "again": []}
        async with aiohttp.ClientSession() as session:
            for url in paths.values():
                for name, base in (
                    ("straight from the backend", origin.url),
                    ("first", client.base),
                    ("again", client.base),
                ):
                    started = time.process_time()
                    async with session.get(base + url, headers={"Accept-Encoding": "identity"}) as response:
                        await response.read()
                    timings[name].append(time.process_time() - started)
    mean_size = statistics.mean(map(len, found.values())) / 1024
    for name, values in timings.items():
        median = statistics.median(values) * 1e6
        print(f"  {name:<26} {median:7.0f} µs CPU of client, backend and service together")
    print(f"  ({len(found)} documents of {mean_size:.0f} KB on average)")


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve_file(Path(sys.argv[2]))
        return
    if not DATA.is_dir():
        sys.exit("no reference data beside the checkout")
    print("taking in a release (bar: 1 s CPU)")
    asyncio.run(ingest())
    print("first fetch of a native document")
    asyncio.run(first_fetch())
    if shutil.which("wrk") is None:
        print("no wrk on this machine: the loop's lag under load is not measured")
        return
    print(f"a 3.85 MB Swagger 2.0 document arrives while {CLIENTS} clients load the root (bar: 10 ms)")
    asyncio.run(lag_while_converting())


if __name__ == "__main__":
    main()

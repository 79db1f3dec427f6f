"""A thousand backends behind one service: run with ``python tests/benchmarks/bench_backends.py``.

Each has three group-versions and a port of its own; some take connections and never answer. Rows: the time
from the start until all others are in the root, what the service costs while nothing changes, its memory, and
how soon a change of one backend is seen. The backends live in a process of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson

from running.process import Process
from running.processor_time import cpu_of, family

GROUP_VERSIONS = 3
INTERVAL = 10.0
"""Seconds between checks, the default."""

BARS = {"start": 5.0, "idle": 8.0, "memory": 200.0, "change": INTERVAL + 1.0}
"""Seconds, percent of a core, MiB, seconds."""

OPEN_FILES = 8192


def main() -> None:
    arguments = _parsed()
    if arguments.serve:
        asyncio.run(serve(arguments.backends, arguments.hanging))
        return
    _allow_files()
    command = [sys.executable, __file__, "--serve", f"--backends={arguments.backends}"]
    command.append(f"--hanging={arguments.hanging}")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as backends:
        assert backends.stdin is not None
        assert backends.stdout is not None
        try:
            ports = orjson.loads(backends.stdout.readline())
            measure(ports, arguments, lambda: print("change", file=backends.stdin, flush=True))
        finally:
            backends.kill()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backends", type=int, default=1000)
    parser.add_argument("--hanging", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="of doing nothing")
    parser.add_argument("--interval", type=float, default=INTERVAL)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(ports: list[int], arguments: argparse.Namespace, change: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "specmux.yaml"
        path.write_bytes(configuration(ports, arguments.interval))
        wanted = (arguments.backends - arguments.hanging) * GROUP_VERSIONS
        started = time.monotonic()
        process = Process("serve", "--config", str(path))
        try:
            process.until_printed(r"serving on")
            listening = time.monotonic() - started
            while len(listed(process)) < wanted and time.monotonic() - started < 60:
                time.sleep(0.1)
            found = time.monotonic() - started
            at_start = cpu_of(process.pid)
            print(f"  {len(listed(process))} of {wanted} group-versions listed")
            _row("listening", listening, "s")
            _row("all that answer are in the root", found, "s", BARS["start"])
            _row("CPU until then", at_start, "s")
            time.sleep(2 * arguments.interval)
            idle = idle_percent(process.pid, arguments.seconds)
            _row(f"idle, of a core, {arguments.seconds:g} s", idle, "%", BARS["idle"])
            _row("memory, service and workers (PSS)", memory_of(process.pid), "MiB", BARS["memory"])
            before = listed(process)
            changed = time.monotonic()
            change()  # type: ignore[operator]
            while listed(process) == before and time.monotonic() - changed < 60:
                time.sleep(0.1)
            _row("a change of one is seen", time.monotonic() - changed, "s", arguments.interval + 1)
        finally:
            process.stop()


def configuration(ports: list[int], interval: float) -> bytes:
    backends = [{"name": f"backend-{port}", "url": f"http://127.0.0.1:{port}"} for port in ports]
    return orjson.dumps({"listen": {"port": 0}, "polling": {"interval": interval}, "backends": backends})


def _row(name: str, value: float, unit: str, bar: float | None = None) -> None:
    print(f"  {name:<40} {value:8.2f} {unit:<4}" + ("" if bar is None else f" bar {bar:g}"), flush=True)


def listed(process: Process) -> dict[str, str]:
    status, _, body = process.get("/openapi/v3")
    paths = orjson.loads(body)["paths"] if status == 200 else {}
    return {key: item["serverRelativeURL"] for key, item in paths.items()}


def idle_percent(pid: int, seconds: float) -> float:
    before, started = cpu_of(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_of(pid) - before) / (time.monotonic() - started)


def memory_of(pid: int) -> float:
    """MiB of a process and those below it; what they share counts once."""
    total = 0
    for member in family(pid):
        for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def _allow_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Backend:
    """One apiserver: what it answers, by path, made ahead."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.answers: dict[bytes, tuple[bytes, bytes]] = {}
        self.note(0)

    def note(self, revision: int) -> None:
        """Offer documents of this revision from now on."""
        group = f"g{self.number}.example.com"
        paths, versions = {}, []
        for version in range(1, GROUP_VERSIONS + 1):
            key = f"apis/{group}/v{version}"
            digest = hashlib.sha512(f"{key} {revision}".encode()).hexdigest().upper()
            paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
            resources = [
                {
                    "resource": f"things{item}",
                    "responseKind": {"group": group, "version": f"v{version}", "kind": f"Thing{item}"},
                    "scope": "Namespaced",
                    "singularResource": f"thing{item}",
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                }
                for item in range(5)
            ]
            versions.append({"version": f"v{version}", "freshness": "Current", "resources": resources})
        items = [{"metadata": {"name": group}, "versions": versions}]
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        listing = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        self.answers = {
            b"/openapi/v3": _answers("application/json", {"paths": paths}),
            b"/api": _answers(listing, {**head, "items": []}),
            b"/apis": _answers(listing, {**head, "items": items}),
            b"/version": _answers("application/json", {"major": "1", "minor": "35"}),
        }

    def answer(self, head: bytes) -> bytes:
        whole, unchanged = self.answers.get(head.split(b" ", 2)[1], (NOT_FOUND, NOT_FOUND))
        _, _, given = head.partition(b"If-None-Match: ")
        return unchanged if given and given.split(b"\r\n", 1)[0] in unchanged else whole


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _answers(media_type: str, value: object) -> tuple[bytes, bytes]:
    body = orjson.dumps(value)
    etag = hashlib.sha256(body).hexdigest()
    whole = f'HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nETag: "{etag}"\r\n'
    return (
        f"{whole}Content-Length: {len(body)}\r\n\r\n".encode() + body,
        f'HTTP/1.1 304 Not Modified\r\nETag: "{etag}"\r\n\r\n'.encode(),
    )


class Connection(asyncio.Protocol):
    def __init__(self, backend: Backend, *, hangs: bool) -> None:
        self._backend = backend
        self._hangs = hangs
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while not self._hangs and b"\r\n\r\n" in self._read:
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            self._transport.write(self._backend.answer(head + b"\r\n"))


async def serve(count: int, hanging: int) -> None:
    """Tells its ports, then changes the last backend at every line of standard input."""
    _allow_files()
    loop = asyncio.get_running_loop()
    backends = [Backend(number) for number in range(count)]
    ports = []
    for number, backend in enumerate(backends):
        hangs = number < hanging
        server = await loop.create_server(
            lambda backend=backend, hangs=hangs: Connection(backend, hangs=hangs),  # type: ignore[misc]
            "127.0.0.1",
            0,
        )
        ports.append(server.sockets[0].getsockname()[1])
    print(orjson.dumps(ports).decode(), flush=True)
    revision = 0
    while await asyncio.to_thread(sys.stdin.readline):
        revision += 1
        backends[-1].note(revision)


if __name__ == "__main__":
    main()

"""What a request costs the server, next to nginx and Granian that serve the same bytes, in one run.

Run as root on a machine with two cores, after ``apt-get install nginx-light wrk``::

    .venv/bin/python tests/benchmarks/bench_serving.py --directory ../shared/data/k8s-pairs/1.35/v3

CPU time of the serving process per request, from ``/proc/<pid>/schedstat``; servers on one core, wrk on the
other; short rounds of all servers in shuffled order; medians, and ratios of medians. Everything runs in a
network namespace of its own with cubic as congestion control where the machine allows one, else on loopback
(bbr distorts there).
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import random
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import trustme

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import keep
from serving_servers import (
    CLIENT_CORE,
    Server,
    descendants,
    granian,
    nginx,
    proportional,
    specmux,
)

from shared_data import DATA

HERE = Path(__file__).resolve()
NETNS = "BENCH_SERVING_NETNS"
TOKEN = "0123456789abcdef0123456789abcdef"
ENCODINGS = ("identity", "gzip", "zstd")
ACCEPTS = (
    "application/json",
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/cbor",
)

UNIQUE_LUA = """
local count = {start}
request = function()
  count = count + 1
  return {head} .. "Audit-Id: 7b8b7c46-3d5a-4b6e-9d0f-" .. string.format("%012d", count) .. "\\r\\n\\r\\n"
end
"""

HASHES_LUA = """
local count = 0
request = function()
  count = count + 1
  return wrk.format("GET", "{path}?hash=" .. string.rep("0", 112) .. string.format("%016X", count * 7919))
end
"""


@dataclass(frozen=True)
class Row:
    """One kind of request."""

    name: str
    target: str
    fields: str = ""
    nginx_target: str = ""
    nginx_fields: str = ""
    big: bool = False

    def client(self, run: Path, server: Server, *, unique: bool) -> list[str]:
        """What wrk is to send. A script slows wrk down, so there is one only where it must be."""
        target = self.nginx_target or self.target if server.is_nginx else self.target
        fields = self.nginx_fields or self.fields if server.is_nginx else self.fields
        lines = [
            "User-Agent: kubectl/v1.35.0 (linux/amd64)",
            "Accept: application/json",
            *fields.splitlines(),
            *(f"{name}: {value}" for name, value in server.fields.items()),
        ]
        if not unique:
            return [target, *(argument for line in lines for argument in ("-H", line))]
        head = "\r\n".join([f"GET {target} HTTP/1.1", "Host: 127.0.0.1", *lines, ""])
        script = run / "unique.lua"
        start = random.randrange(10**11)
        script.write_text(UNIQUE_LUA.format(head=orjson.dumps(head).decode(), start=start))
        return [target, "-s", str(script)]


CLIENTS = {"repeats itself": False, "a unique header each": True}
"""How a client asks, and whether no two of its requests are alike."""

WAITING = 1000

CLIENT_HELLO_BEGINS = bytes.fromhex("160301020001")
"""The head of a TLS record (RFC 8446, section 5.1) of 512 bytes, and the first of them."""

DOCUMENTS = DATA / "k8s-pairs" / "1.35" / "v3"
"""The reference data beside the checkout."""


def main() -> None:
    options = parse()
    missing = [name for name in ("nginx", "wrk") if shutil.which(name) is None]
    if missing:
        print(f"not measured: no {' and no '.join(missing)} here (apt-get install nginx-light wrk)")
        return
    if not options.directory.is_dir():
        print("not measured: no documents (--directory)")
        return
    enter_namespace()
    congestion = congestion_control()
    print(f"Linux {os.uname().release}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f},")
    print(f"{options.rounds} rounds of {options.seconds} s, {options.connections} connections,")
    print(f"congestion control {congestion}, {'own' if os.environ.get(NETNS) else 'no'} network namespace\n")
    with tempfile.TemporaryDirectory(prefix="specmux-bench-") as folder:
        run = Path(folder)
        if "rows" in options.parts:
            rows(options, run)
        if "memory" in options.parts:
            memory(options, run)
        if "connections" in options.parts:
            connections(options, run)
        if "growth" in options.parts:
            growth(options, run)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", type=Path, default=DOCUMENTS, help="v3 documents, as specmux serve takes them"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1, help="of one round of one server and row")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--parts", nargs="+", default=["rows", "memory", "connections", "growth"])
    parser.add_argument("--only", default="", help="regular expression on the names of rows")
    return parser.parse_args()


def enter_namespace(program: Path = HERE) -> None:
    """Start ``program`` over inside a network namespace of our own, where that is allowed."""
    if os.environ.get(NETNS) is not None:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # By route, not by sysctl: a namespace may set only what its parent allows the unprivileged.
        loopback = "table local local 127.0.0.1 dev lo proto kernel scope host src 127.0.0.1 congctl cubic"
        subprocess.run(["ip", "route", "replace", *loopback.split()], check=True)
        return
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        environment = {**os.environ, NETNS: "1"}
        command = ["unshare", "--net", sys.executable, str(program), *sys.argv[1:]]
        if subprocess.run(["unshare", "--net", "true"], check=False).returncode == 0:
            os.execvpe(command[0], command, environment)


def congestion_control() -> str:
    """What a connection on loopback really uses."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


def rows(options: argparse.Namespace, run: Path) -> None:
    """The table of requests: CPU per request of every server, and the ratio to nginx."""
    with specmux(options.directory, name="specmux") as fast:
        table = request_kinds(fast, run)
        documents = next(row for row in table if row.name.startswith("50 KB"))
        hash_ = documents.target.rpartition("=")[2]
        with nginx(run, "on", hash_) as plain, nginx(run, "off", hash_) as copying, granian(run) as python:
            table = [with_nginx_etag(row, plain) for row in table if re.search(options.only, row.name)]
            measured = measure(options, run, table, [fast, plain, copying, python])
    print("| request | client | nginx | Granian | specmux | ratio to nginx | to Granian |")
    print("|---|---|---|---|---|---|---|")
    for row in table:
        for client, unique in CLIENTS.items():
            for peer in ("nginx", "nginx without sendfile") if row.big else ("nginx",):
                base = measured[row.name, unique, peer]
                cost = measured[row.name, unique, "specmux"]
                name = row.name if peer == "nginx" else f"{row.name}, {peer}"
                other = measured[row.name, unique, "Granian"]
                figures = f"{base:.1f} | {other:.1f} | {cost:.1f} | {cost / base:.2f} | {cost / other:.2f}"
                print(f"| {name} | {client} | {figures} |")
    print("\nCPU microseconds of the server per request.\n")
    servers = ("specmux", "nginx")
    keep(
        "serving",
        {
            f"{row.name}, {client}": (measured[row.name, unique, server] for server in servers)
            for row in table
            if not row.big
            for client, unique in CLIENTS.items()
        },
    )


def request_kinds(server: Server, run: Path) -> list[Row]:
    """Rows made from what the server publishes; nginx's files are written from its answers."""
    files = run / "files"
    (files / "documents").mkdir(parents=True)
    _, root_head, root = server.get("/openapi/v3")
    (files / "root.json").write_bytes(root)
    urls = [entry["serverRelativeURL"] for entry in orjson.loads(root)["paths"].values()]
    sizes = {url: len(server.get(url)[2]) for url in urls}
    small = min(sizes, key=lambda url: abs(sizes[url] - 50_000))
    large = min(sizes, key=lambda url: abs(sizes[url] - 1_100_000))
    for url in (small, large):
        file = files / "documents" / url.partition("?")[0].removeprefix("/openapi/v3/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(server.get(url)[2])
        packed = server.get(url, Accept_Encoding="gzip")[2]
        assert gzip.decompress(packed) == file.read_bytes()
        Path(f"{file}.gz").write_bytes(packed)
    stale = small.partition("?")[0] + "?hash=" + "0" * 128
    return [
        Row(f"root, {len(root) / 1000:.1f} KB", "/openapi/v3"),
        Row("304 of the root", "/openapi/v3", f"If-None-Match: {root_head['etag']}\r\n"),
        Row("301 to the current hash", stale, nginx_target=stale.replace("/openapi/v3/", "/stale/")),
        Row(f"50 KB document, {sizes[small] / 1000:.1f} KB", small),
        Row(f"gzip of the largest document, {len(packed) / 1000:.1f} KB", large, "Accept-Encoding: gzip\r\n"),
        Row(f"largest document, {sizes[large] / 1e6:.2f} MB", large, big=True),
    ]


def with_nginx_etag(row: Row, server: Server) -> Row:
    """nginx makes its own ETag, so its 304 is asked for with that."""
    if not row.fields.startswith("If-None-Match"):
        return row
    _, fields, _ = server.get(row.target)
    return Row(row.name, row.target, row.fields, nginx_fields=f"If-None-Match: {fields['etag']}\r\n")


def measure(
    options: argparse.Namespace, run: Path, table: list[Row], servers: list[Server]
) -> dict[tuple[str, bool, str], float]:
    """Median CPU microseconds per request by row, kind of client and server."""
    plan = [
        (row, unique, server)
        for row in table
        for unique in (False, True)
        for server in servers
        if row.big or server.name != "nginx without sendfile"
    ]
    samples: dict[tuple[str, bool, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for row, unique, server in random.sample(plan, len(plan)):
            client = row.client(run, server, unique=unique)
            samples[row.name, unique, server.name].append(cost(options, server, client))
    return {key: statistics.median(values) for key, values in samples.items()}


def cost(options: argparse.Namespace, server: Server, client: list[str]) -> float:
    """CPU microseconds per request of one round."""
    before = server.cpu()
    requests = wrk(server, client, options.seconds, options.connections)
    return (server.cpu() - before) / 1000 / requests


def wrk(server: Server, client: list[str], seconds: int, connections: int) -> int:
    """How many requests were answered. Ends the benchmark when one was not; a 301 is an answer."""
    target, *arguments = client
    command = ["taskset", "-c", CLIENT_CORE, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *arguments]
    url = f"{'https' if server.is_encrypted else 'http'}://127.0.0.1:{server.port}{target}"
    output = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(\d+) requests in", output)
    if found is None or found[1] == "0" or "Socket errors" in output:
        raise SystemExit(f"{server.name}: {output}")
    return int(found[1])


def memory(options: argparse.Namespace, run: Path) -> None:
    """Resident memory with everything loaded, and after 200,000 requests for hashes that nobody knows."""
    with specmux(options.directory) as server:
        empty = settled(server)
        paths = orjson.loads(server.get("/openapi/v3")[2])["paths"]
        urls = [entry["serverRelativeURL"] for entry in paths.values()]
        forms = 0
        for url in urls:
            for accept in ACCEPTS:
                for encoding in ENCODINGS:
                    forms += server.get(url, Accept=accept, Accept_Encoding=encoding)[0] == 200
        loaded, children = server.rss(), sum(map(proportional, descendants(server.pid)))
        script = run / "hashes.lua"
        script.write_text(HASHES_LUA.format(path=urls[0].partition("?")[0]))
        asked = 0
        while asked < 200_000:
            asked += wrk(server, ["", "-s", str(script)], 2, options.connections)
        flooded = server.rss()
    print("| memory of the serving process | MiB |\n|---|---|")
    print(f"| started, {len(urls)} group-versions | {empty:.1f} |")
    print(f"| {forms} forms of their documents loaded | {loaded:.1f} |")
    print(f"| its worker processes besides, their share of common pages | {children:.1f} |")
    print(f"| growth over {asked:,} requests with random hashes | {flooded - loaded:+.1f} |\n")


def connections(options: argparse.Namespace, run: Path) -> None:
    """Resident memory of connections that wait for a request, and of TLS handshakes that have begun."""
    certificate = run / "waiting.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    tls = ("--listen-tls-cert-file", str(certificate), "--listen-tls-key-file", str(certificate))
    print(f"| memory of {WAITING:,} connections, each | KiB |\n|---|---|")
    for name, flags, begin in (
        ("open, after one request", (), asked),
        ("open, after one request with TLS", tls, asked),
        ("TLS handshake under way", tls, said_hello),
    ):
        with specmux(options.directory, *flags, is_encrypted=bool(flags)) as server:
            print(f"| {name} | {held(server, begin):.1f} |")
    print()


def asked(server: Server, connection: socket.socket) -> socket.socket:
    if server.is_encrypted:
        connection = ssl._create_unverified_context().wrap_socket(connection)
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: bench\r\n\r\n")
    if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{server.name} does not answer")
    return connection


def said_hello(server: Server, connection: socket.socket) -> socket.socket:
    connection.sendall(CLIENT_HELLO_BEGINS)
    return connection


def held(server: Server, begin: Callable[[Server, socket.socket], socket.socket]) -> float:
    """KiB by which the server grows for each connection that has begun so, and waits."""
    before = settled(server)
    with contextlib.ExitStack() as stack:
        for _ in range(WAITING):
            connection = socket.create_connection(("127.0.0.1", server.port), 60)
            stack.enter_context(begin(server, connection))
        time.sleep(1)  # what was sent last is read by then
        return (server.rss() - before) * 1024 / WAITING


def settled(server: Server) -> float:
    """Resident MiB once the server has read its documents for the page, a while after it is ready."""
    last = server.rss()
    for _ in range(15):
        time.sleep(1)
        last, before = server.rss(), last
        if abs(last - before) < 0.1:
            break
    return last


def growth(options: argparse.Namespace, run: Path) -> None:
    """The cost of the root against the number of group-versions."""
    print("| root | identity | size | gzip | size | 304 |\n|---|---|---|---|---|---|")
    for count in (36, 360, 3600):
        folder = run / f"documents-{count}"
        folder.mkdir()
        for number in range(count):
            file = folder / "apis" / f"group{number}.example.com" / "v1.json"
            file.parent.mkdir(parents=True)
            file.write_bytes(
                orjson.dumps(
                    {"openapi": "3.0.0", "info": {"title": f"{number}", "version": "1"}, "paths": {}}
                )
            )
        with specmux(folder, expected=count) as server:
            cells = []
            etag = ""
            for fields in ("", "Accept-Encoding: gzip\r\n", "If-None-Match: "):
                row = Row("root", "/openapi/v3", fields + (f"{etag}\r\n" if fields.startswith("If") else ""))
                _, head, body = server.get(
                    "/openapi/v3", Accept_Encoding="gzip" if "gzip" in fields else "identity"
                )
                etag = etag or head["etag"]
                client = row.client(run, server, unique=False)
                values = [cost(options, server, client) for _ in range(options.rounds)]
                cells.append(f"{statistics.median(values):.1f}")
                if not fields.startswith("If"):
                    cells.append(f"{len(body) / 1000:.1f} KB")
        print(f"| {count:,} group-versions | {' | '.join(cells)} |")
    print()


if __name__ == "__main__":
    main()

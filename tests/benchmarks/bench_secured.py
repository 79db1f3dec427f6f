"""What TLS and authentication add to a request, and what a handshake costs: next to nginx with TLS and the
same certificate, and next to the same service without authentication, in one run.

Run as root on a machine with two cores, after ``apt-get install nginx-light wrk``::

    .venv/bin/python tests/benchmarks/bench_secured.py --directory ../shared/data/k8s-pairs/1.35/v3

Measured as in bench_serving.py. wrk shows no certificate, so mode mtls, and what it is compared with, are
asked by a client of ours on as many connections.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import socket
import ssl
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import orjson
import trustme

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from bench_serving import (  # noqa: E402
    CLIENT_CORE,
    CLIENTS,
    DOCUMENTS,
    TOKEN,
    Row,
    Server,
    enter_namespace,
    measure,
    nginx,
    request_kinds,
    specmux,
    with_nginx_etag,
)
from serving_servers import bare_tls  # noqa: E402

from fakes.reviewer import reviewing  # noqa: E402

HANDSHAKES = 20
"""Of one kind, server and round."""

HANDSHAKE_ROUNDS = 20
"""Rounds of handshakes for each round of requests."""

CERTIFICATE = "127.0.0.1"


class Files:
    """Certificates, tokens and a kubeconfig."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority, clients = trustme.CA(), trustme.CA()
        self.certificate = folder / "tls.pem"
        authority.issue_cert(CERTIFICATE).private_key_and_cert_chain_pem.write_to_path(self.certificate)
        self.client_ca, self.client = folder / "clients.crt", folder / "client.pem"
        clients.cert_pem.write_to_path(self.client_ca)
        clients.issue_cert("somebody@example.org").private_key_and_cert_chain_pem.write_to_path(self.client)
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"{TOKEN},somebody\n")
        self.tls = (
            "--listen-tls-cert-file",
            str(self.certificate),
            "--listen-tls-key-file",
            str(self.certificate),
        )

    def kubeconfig(self, port: int) -> Path:
        file = self.folder / "kubeconfig"
        named = {"name": "bench"}
        config = {
            "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{**named, "context": {"cluster": "bench", "user": "bench"}}],
            "users": [{**named, "user": {}}],
            "current-context": "bench",
        }
        file.write_bytes(orjson.dumps(config))
        return file

    def context(self, *, shows_certificate: bool = False) -> ssl.SSLContext:
        context = ssl._create_unverified_context()
        if shows_certificate:
            context.load_cert_chain(self.client)
        return context


def main() -> None:
    options = parse()
    missing = [name for name in ("nginx", "wrk") if shutil.which(name) is None]
    if missing:
        print(f"not measured: no {' and no '.join(missing)} here (apt-get install nginx-light wrk)")
        return
    if not options.directory.is_dir():
        print("not measured: no documents (--directory)")
        return
    enter_namespace(Path(__file__).resolve())
    os.sched_setaffinity(0, {int(CLIENT_CORE)})
    with tempfile.TemporaryDirectory(prefix="specmux-bench-") as folder:
        files = Files(Path(folder))
        if "tls" in options.parts:
            tls(options, files)
        if "tokens" in options.parts:
            tokens(options, files)
        if "mtls" in options.parts:
            mtls(options, files)


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
    parser.add_argument("--parts", nargs="+", default=["tls", "tokens", "mtls"])
    return parser.parse_args()


def tls(options: argparse.Namespace, files: Files) -> None:
    """Requests and handshakes with TLS 1.3, next to nginx."""
    here = files.folder / "tls"
    here.mkdir()
    with specmux(options.directory, *files.tls, name="encrypted", is_encrypted=True) as encrypted:
        kinds = kinds_of(encrypted, here)
        with nginx(here, "on", "", certificate=files.certificate) as peer:
            kinds = [with_nginx_etag(row, peer) for row in kinds]
            measured = measure(options, here, kinds, [encrypted, peer])
            root = len(encrypted.get("/openapi/v3")[2])
            with bare_tls(files.certificate, root) as bare:
                shaken = handshakes(options, files, [encrypted, peer, bare])
    show(kinds, measured, (peer.name, "nginx with TLS 1.3"), {"encrypted": "specmux"})
    print(
        "| handshake, with a request after it | nginx | specmux | per CPU second, of nginx's | bare | of it |"
    )
    print("|---|---|---|---|---|---|")
    for kind in ("full", "resumed"):
        theirs = shaken[kind, peer.name]
        costs = [shaken[kind, name] for name in ("encrypted", bare.name)]
        cells = [f"{cost:.0f} | {theirs / cost:.2f}" for cost in costs]
        print(f"| {kind} | {theirs:.0f} | {' | '.join(cells)} |")
    print("\nCPU microseconds of the server.\n")


def tokens(options: argparse.Namespace, files: Files) -> None:
    """Modes token-file and kubernetes, next to no authentication."""
    here = files.folder / "tokens-run"
    here.mkdir()
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    listed = ("--auth-mode", "token-file", "--auth-token-file", str(files.tokens))
    with reviewing() as reviewer:
        reviewer.fake.know(TOKEN, "somebody")
        reviewed = (
            *("--auth-mode", "kubernetes", "--kubeconfig", str(files.kubeconfig(reviewer.fake.port))),
            *("--no-kubernetes-api-services", "--no-kubernetes-crds", "--no-kubernetes-apiserver"),
        )
        with (
            specmux(options.directory, name="plain") as plain,
            specmux(options.directory, *listed, name="listed", fields=bearer) as by_list,
            specmux(options.directory, *reviewed, name="reviewed", fields=bearer) as by_review,
        ):
            kinds = kinds_of(plain, here)
            measured = measure(options, here, kinds, [plain, by_list, by_review])
    show(kinds, measured, ("plain", "no auth"), {"listed": "token-file", "reviewed": "kubernetes"})


def mtls(options: argparse.Namespace, files: Files) -> None:
    """Mode mtls, next to TLS without authentication."""
    here = files.folder / "mtls"
    here.mkdir()
    proven = ("--auth-mode", "mtls", "--auth-client-ca-file", str(files.client_ca))
    context = files.context(shows_certificate=True)
    with (
        specmux(options.directory, *files.tls, name="encrypted", is_encrypted=True) as encrypted,
        specmux(
            options.directory, *files.tls, *proven, name="proven", is_encrypted=True, context=context
        ) as guarded,
    ):
        kinds = kinds_of(encrypted, here)
        samples: dict[tuple[str, bool, str], list[float]] = defaultdict(list)
        plan = [
            (row, unique, server)
            for row in kinds
            for unique in CLIENTS.values()
            for server in (encrypted, guarded)
        ]
        for _ in range(options.rounds):
            for row, unique, server in random.sample(plan, len(plan)):
                spent = asked_by_us(server, row, context, unique=unique, connections=options.connections)
                samples[row.name, unique, server.name].append(spent)
    measured = {key: statistics.median(values) for key, values in samples.items()}
    show(kinds, measured, ("encrypted", "TLS, no auth"), {"proven": "mtls"})


def kinds_of(server: Server, run: Path) -> list[Row]:
    return [row for row in request_kinds(server, run) if row.name.startswith(("root", "304", "gzip"))]


def show(
    kinds: list[Row],
    measured: dict[tuple[str, bool, str], float],
    base: tuple[str, str],
    others: dict[str, str],
) -> None:
    heads = [f"{shown} | ratio" for shown in others.values()]
    print(f"| request | client | {base[1]} | {' | '.join(heads)} |")
    print("|---|---|---|" + "---|---|" * len(others))
    for row in kinds:
        for client, unique in CLIENTS.items():
            before = measured[row.name, unique, base[0]]
            costs = [measured[row.name, unique, name] for name in others]
            cells = [f"{cost:.1f} | {cost / before:.2f}" for cost in costs]
            print(f"| {row.name} | {client} | {before:.1f} | {' | '.join(cells)} |")
    print("\nCPU microseconds of the server per request.\n")


def handshakes(
    options: argparse.Namespace, files: Files, servers: list[Server]
) -> dict[tuple[str, str], float]:
    """Median CPU microseconds of a connection with one request, by kind of handshake and server. Short
    rounds, each server in turn, so that whatever else runs on the machine meets all of them."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds * HANDSHAKE_ROUNDS):
        for server in random.sample(servers, len(servers)):
            for kind in ("full", "resumed"):
                context = files.context()
                session = None
                if kind == "resumed":
                    with connected(server, context) as client:
                        exchange(client, request_of("/openapi/v3"))
                        session = client.session
                before = server.cpu()
                for _ in range(HANDSHAKES):
                    with connected(server, context, session) as client:
                        exchange(client, request_of("/openapi/v3"))
                        assert client.session_reused is (kind == "resumed")
                samples[kind, server.name].append((server.cpu() - before) / 1000 / HANDSHAKES)
    return {key: statistics.median(values) for key, values in samples.items()}


def asked_by_us(
    server: Server, row: Row, context: ssl.SSLContext, *, unique: bool, connections: int
) -> float:
    """CPU microseconds of the server per request."""
    rounds = 60
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server, context)) for _ in range(connections)]
        size = max([exchange(client, request_of(row.target, row.fields)) for client in clients])
        number = random.randrange(10**11)
        before = server.cpu()
        for _ in range(rounds):
            for client in clients:
                number += 1
                own = f"Audit-Id: 7b8b7c46-3d5a-4b6e-9d0f-{number:012d}\r\n" if unique else ""
                client.sendall(request_of(row.target, row.fields + own))
            for client in clients:
                receive(client, size)
        return (server.cpu() - before) / 1000 / (rounds * connections)


@contextlib.contextmanager
def connected(
    server: Server, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    plain = socket.create_connection(("127.0.0.1", server.port), 60)
    with context.wrap_socket(plain, server_hostname=CERTIFICATE, session=session) as client:
        yield client


def request_of(target: str, fields: str = "") -> bytes:
    agent = "User-Agent: kubectl/v1.35.0 (linux/amd64)\r\nAccept: application/json\r\n"
    return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{agent}{fields}\r\n".encode()


def exchange(client: ssl.SSLSocket, request: bytes) -> int:
    """The bytes of the whole answer."""
    client.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(1 << 16)
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise SystemExit(head.decode())
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    size = len(head) + 4 + (int(length[1]) if length and head.startswith(b"HTTP/1.1 200") else 0)
    receive(client, size - len(head) - 4 - len(body))
    return size


def receive(client: ssl.SSLSocket, size: int) -> None:
    while size > 0:
        data = client.recv(min(size, 1 << 17))
        if not data:
            raise SystemExit("the server closed")
        size -= len(data)


if __name__ == "__main__":
    main()

"""A real server on loopback with a made-up service, in each tier, and a client that speaks bytes."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deadline import DEADLINE
from specmux_aggregator.auth.guard import RequestGuard
from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.output_limits import UNREAD_MAX
from specmux_aggregator.server.protocols import Pending
from specmux_aggregator.server.stats import RequestCounts

TIERS = ("parsed", "memoised")

BIG = bytes(range(256)) * 4096
MIDDLE = bytes(range(256)) * 1040  # 266 KB: more than is copied once there is a file
"""1 MiB: several times what goes out in one piece."""

TIME_LINES = re.compile(rb"(Date|Expires): [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n")


@dataclass
class FakeService:
    """Answers by path; says what it was asked. ``/slow`` and ``/hang`` have to be waited for."""

    generation: int = 1
    asked: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    good_until: float | None = None

    def immediate(self, request: Request) -> PreparedAnswer | Pending:
        if request.path in ("/slow", "/hang", "/broken"):
            return Pending(request)
        self.asked.append(request)
        return self.answer(request)

    async def respond(self, pending: Pending) -> PreparedAnswer:
        request = pending.request
        if request.path == "/broken":
            raise RuntimeError("a bug")
        while request.path == "/hang" and not self.released.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        return self.answer(request)

    def answer(self, request: Request) -> PreparedAnswer:
        is_head = request.method == "HEAD"
        if request.method not in ("GET", "HEAD"):
            return prepare(405, [("Allow", "GET, HEAD")], b"no\n", is_head=is_head)
        if request.path == "/bad":
            return prepare(400, [], b"bad\n", is_head=is_head)
        if request.if_none_match == '"v"':
            return prepare(304, [("ETag", '"v"')], route="openapi_root")
        if request.path == "/big":
            return prepare(200, [("ETag", '"big"')], BIG, is_head=is_head, is_immutable=True)
        if request.path == "/middle":
            return prepare(200, [("ETag", '"middle"')], MIDDLE, is_head=is_head, is_immutable=True)
        if request.path == "/wide":
            return prepare(200, [], b"x" * 100_000, is_head=is_head)
        said = (
            f"{request.path}?{request.query} {request.accept} {request.accept_encoding} {self.generation}\n"
        )
        fields = [("Content-Type", "text/plain"), ("ETag", '"v"')]
        answer = prepare(200, fields, said.encode(), is_head=is_head, format="text")
        return replace(answer, good_until=self.good_until)


@dataclass
class Running:
    """A started server."""

    server: HTTPServer
    service: Any
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def counts(self) -> RequestCounts:
        return self.server.stats.snapshot()

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        client = socket.socket()
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(DEADLINE)
        try:
            client.connect(("127.0.0.1", self.port))
        except OSError:
            client.close()
            raise
        return client

    def exchange(self, *sent: bytes, half_close: bool = False) -> bytes:
        """Send the pieces one by one, and read until the server closes."""
        with self.connect() as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for piece in sent:
                    client.sendall(piece)
                if half_close:
                    client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # closed before it had everything; what it said first can still be read
            return read_all(client)

    def exchange_in_step(self, *sent: bytes) -> bytes:
        """Send each piece after the answer to the one before; read until the server closes."""
        with self.connect() as client:
            received = b""
            for piece in sent[:-1]:
                client.sendall(piece)
                received += read_answer(client)
            client.sendall(sent[-1])
            return received + read_all(client)

    def call(self, coroutine: Any) -> Any:
        """Run it in the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE)


@contextmanager
def running(
    tier: str = "memoised",
    service: Any = None,
    *,
    gate: RequestGuard | None = None,
    client_ca_file: Path | None = None,
    unread_max: int = UNREAD_MAX,
    **listen: Any,
) -> Iterator[Running]:
    """A server in a thread of its own, stopped at the end, and the gate in front of it with it."""
    service = FakeService() if service is None else service
    settings = {"header_timeout": DEADLINE, "shutdown_timeout": 1.0, **listen}
    server = HTTPServer(
        service,
        ListenSettings(port=0, **settings),
        use_memo=tier == "memoised",
        guard=gate,
        client_ca_file=client_ca_file,
        unread_max=unread_max,
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        _, port = asyncio.run_coroutine_threadsafe(server.start(), loop).result(DEADLINE)
        if gate is not None:
            loop.call_soon_threadsafe(gate.start)
        yield Running(server, service, port, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(DEADLINE)
        if gate is not None:
            asyncio.run_coroutine_threadsafe(gate.close(), loop).result(DEADLINE)
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(DEADLINE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def eventually(claim: Callable[[], bool]) -> None:
    """Wait until it is true: what the server counts, it counts after the client has its answer."""
    deadline = time.monotonic() + DEADLINE
    while not claim():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def read_all(client: socket.socket) -> bytes:
    received = bytearray()
    try:
        while chunk := client.recv(1 << 20):
            received += chunk
    except ConnectionResetError:
        received += b"<reset>"  # the server closed before it had read everything
    return bytes(received)


def read_answer(client: socket.socket, *, is_head: bool = False) -> bytes:
    """One answer with its body, by its Content-Length; raises EOFError when the connection ends before."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(client, 1)
    head = received
    length = re.search(rb"Content-Length: (\d+)\r\n", head)
    missing = 0 if length is None or is_head else int(length[1])
    return head + read_exactly(client, missing)


def read_exactly(client: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        received += _some(client, size - len(received))
    return bytes(received)


def _some(client: socket.socket, size: int) -> bytes:
    chunk = client.recv(size)
    if not chunk:
        raise EOFError("the server closed the connection")
    return chunk


def timeless(answer: bytes) -> bytes:
    """Without the lines that follow the clock; their form is checked on the way."""
    assert answer.count(b"\r\nDate: ") == len(re.findall(rb"\r\nDate: [^\r]{29}\r\n", answer))
    return TIME_LINES.sub(rb"\1: ...\r\n", answer)


def request(
    target: str = "/a", *fields: str, method: str = "GET", close: bool = False, body: bytes = b""
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: specmux", *fields]
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

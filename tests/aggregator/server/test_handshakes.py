"""TLS: clients whose handshake is not done, who are counted, bounded in time and trusted for no longer than
others; and answers that are longer than what goes out in one piece."""

from __future__ import annotations

import asyncio
import gc
import shutil
import socket
import ssl
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest
import trustme
from prometheus_client import CollectorRegistry

from running.serving import BIG, TIERS, Running, eventually, read_all, read_answer, request, running
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.server import listener as server_module
from specmux_aggregator.server.connection import Connection
from specmux_aggregator.server.tls_transport import TLSTransport

on_every_tier = pytest.mark.parametrize("tier", TIERS)
NAME = "127.0.0.1"


class Authority:
    """A CA, and files with a certificate that it signed for the listener."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.file = folder / "tls.pem"
        self.ca.issue_cert(NAME).private_key_and_cert_chain_pem.write_to_path(self.file)

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.ca.configure_trust(context)
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def encrypted(authority: Authority, tier: str = "memoised", **listen: Any) -> Iterator[Running]:
    with running(tier, tls_cert_file=authority.file, tls_key_file=authority.file, **listen) as started:
        yield started


class Memory:
    """The client's half of a handshake, message by message."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=NAME)

    def greet(self) -> None:
        """Send the first message, and take the server's in."""
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.flush()
        self._take()

    def _take(self) -> None:
        received = self._plain.recv(1 << 16)
        assert received, "the server closed"
        self._incoming.write(received)

    def flush(self) -> None:
        self._plain.sendall(self._outgoing.read())

    def finish(self, data: bytes) -> None:
        """Send the last message of the handshake and the first data at once."""
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._take()
        self.tls.write(data)
        self.flush()

    def read(self) -> bytes:
        """Data, until the server closes; empty where it only refuses."""
        received = b""
        with suppress(OSError):  # ssl.SSLError is one
            while data := self._plain.recv(1 << 16):
                self._incoming.write(data)
                with suppress(ssl.SSLWantReadError):
                    while piece := self.tls.read(1 << 16):
                        received += piece
                    break  # the server has said that this is the end
        return received


def test_handshakes_count_as_connections(authority: Authority) -> None:
    with encrypted(authority, max_connections=3, header_timeout=5.0) as started, ExitStack() as stack:
        held = [stack.enter_context(started.connect()) for _ in range(3)]
        eventually(lambda: started.counts.connections == 3)
        with started.connect() as fourth:
            assert read_all(fourth) == b""
        assert started.counts.connections_refused == 1
        with authority.context().wrap_socket(held[0], server_hostname=NAME) as client:
            client.sendall(request())
            assert b" 200 OK" in read_answer(client)
            assert started.counts.connections == 3
        eventually(lambda: started.counts.connections == 2)


def test_handshakes_count_for_their_address(authority: Authority) -> None:
    with (
        encrypted(authority, max_connections_per_address=1, header_timeout=5.0) as started,
        started.connect(),
    ):
        eventually(lambda: started.counts.connections == 1)
        with started.connect() as second:
            assert read_all(second) == b""
        assert started.counts.connections_refused_by_address == 1
        plain = socket.create_connection((NAME, started.port), 5, source_address=("127.0.0.2", 0))
        with authority.context().wrap_socket(plain, server_hostname=NAME) as other:
            other.sendall(request())
            assert b" 200 OK" in read_answer(other)


@pytest.mark.parametrize("sent", [b"", b"EHLO a\r\n", b"\x16\x03\x01\x02\x00\x01"])
def test_handshake_that_fails_or_never_ends_gives_its_place_back(authority: Authority, sent: bytes) -> None:
    with encrypted(authority, header_timeout=0.3) as started:
        with started.connect() as client:
            client.sendall(sent)
            assert not read_all(client).startswith(b"HTTP")
        eventually(lambda: started.counts.connections == 0)
        with started.connect() as client:
            client.sendall(sent)
            eventually(lambda: started.counts.connections <= 1)
        eventually(lambda: started.counts.connections == 0)


@on_every_tier
def test_request_that_comes_with_the_end_of_the_handshake_is_answered(
    authority: Authority, tier: str
) -> None:
    with encrypted(authority, tier) as started:
        for _ in range(20):
            with started.connect() as plain:
                client = Memory(plain, authority.context())
                client.greet()
                client.finish(request("/a") + request("/b", close=True))
                assert client.read().count(b"HTTP/1.1 200 OK") == 2


def test_stop_waits_for_no_handshake(authority: Authority) -> None:
    with (
        encrypted(authority, header_timeout=600.0, shutdown_timeout=600.0) as started,
        started.connect() as held,
    ):
        eventually(lambda: started.counts.connections == 1)
        started.call(started.server.stop())
        assert read_all(held) in (b"", b"<reset>")


def test_handshake_that_outlasts_a_change_of_the_clients_ca_proves_nothing(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CERTIFICATE_INTERVAL", 0.05)
    old, new = trustme.CA(), trustme.CA()
    ca_file = tmp_path / "clients.crt"
    old.cert_pem.write_to_path(ca_file)
    gate = gate_of(
        Settings(auth=AuthSettings(mode="mtls", client_ca_file=ca_file)),
        Metrics(CollectorRegistry()),
        cluster=None,
    )
    mine, theirs = authority.context(), authority.context()
    old.issue_cert("old@example.org").configure_cert(mine)
    new.issue_cert("new@example.org").configure_cert(theirs)

    def is_let_in(started: Running) -> bool:
        with started.connect() as plain:
            client = Memory(plain, theirs)
            client.greet()
            client.finish(request(close=True))
            return b" 200 OK" in client.read()

    with (
        encrypted(authority, gate=gate, client_ca_file=ca_file, header_timeout=8.0) as started,
        started.connect() as early,
        started.connect() as late,
    ):
        before = Memory(early, mine)
        before.greet()
        before.finish(request(close=True))
        assert b" 200 OK" in before.read()
        begun = Memory(late, mine)
        begun.greet()
        new.cert_pem.write_to_path(ca_file)
        eventually(lambda: is_let_in(started))
        begun.finish(request(close=True))
        assert begun.read() == b""


def test_renewed_certificate_drops_no_handshake(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CERTIFICATE_INTERVAL", 0.05)
    clients = trustme.CA()
    ca_file = tmp_path / "clients.crt"
    clients.cert_pem.write_to_path(ca_file)
    context = authority.context()

    def serial(started: Running) -> object:
        with started.connect() as plain, context.wrap_socket(plain, server_hostname=NAME) as client:
            certificate = client.getpeercert()
            assert certificate is not None
            return certificate["serialNumber"]

    with (
        encrypted(authority, client_ca_file=ca_file, header_timeout=8.0) as started,
        started.connect() as plain,
    ):
        first = serial(started)
        begun = Memory(plain, context)
        begun.greet()
        authority.ca.issue_cert(NAME).private_key_and_cert_chain_pem.write_to_path(authority.file)
        eventually(lambda: serial(started) != first)
        begun.finish(request(close=True))
        assert b" 200 OK" in begun.read()


def test_many_handshakes_are_refused_before_they_cost_anything(authority: Authority) -> None:
    async def flood(port: int) -> int:
        """Connections that are still open after each of them was held for a moment."""
        opened = await asyncio.gather(*(asyncio.open_connection(NAME, port) for _ in range(400)))
        ends = await asyncio.gather(
            *(asyncio.wait_for(reader.read(), 1.0) for reader, _ in opened), return_exceptions=True
        )
        for _, writer in opened:
            writer.close()
        return sum(isinstance(end, TimeoutError) for end in ends)

    with encrypted(authority, max_connections=50, header_timeout=8.0) as started:
        assert asyncio.run(flood(started.port)) == 50
        eventually(lambda: started.counts.connections == 0)
        assert started.counts.connections_refused == 350


def test_handshake_that_does_not_end_holds_little(authority: Authority) -> None:
    held = 50

    def allocated(started: Running) -> int:
        async def current() -> int:
            return tracemalloc.get_traced_memory()[0]

        return int(started.call(current()))

    with encrypted(authority, header_timeout=8.0) as started, ExitStack() as stack:
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for _ in range(held):
            client = Memory(stack.enter_context(started.connect()), authority.context())
            client.greet()  # the server waits for the client's last message
        assert started.counts.connections == held
        assert allocated(started) < held * 128 * 1024  # with asyncio's own buffer it is 256 KiB for each


@on_every_tier
def test_large_and_pipelined_answers_come_whole_over_tls(authority: Authority, tier: str) -> None:
    with encrypted(authority, tier) as started:
        for _ in range(3):
            with authority.context().wrap_socket(started.connect(), server_hostname=NAME) as client:
                for _ in range(3):
                    client.sendall(request("/big"))
                    assert read_answer(client).endswith(BIG)
                client.sendall(request("/big") + request("/a") + request("/big", close=True))
                assert read_all(client).count(BIG) == 2


@on_every_tier
def test_client_that_does_not_read_is_cut_off_over_tls(authority: Authority, tier: str) -> None:
    with (
        encrypted(authority, tier, write_timeout=0.4) as started,
        started.connect(4096) as plain,
        authority.context().wrap_socket(plain, server_hostname=NAME) as client,
    ):
        client.sendall(request("/big") * 20)
        eventually(lambda: started.counts.write_stalls == 1)
        eventually(lambda: started.counts.connections == 0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl, which can ask for a renegotiation")
def test_client_that_wants_to_renegotiate_harms_no_other(authority: Authority) -> None:
    with encrypted(authority, header_timeout=30.0) as started, started.connect() as plain:
        address = f"{NAME}:{plain.getpeername()[1]}"
        command = ["openssl", "s_client", "-connect", address, "-tls1_2", "-state"]
        with (
            authority.context().wrap_socket(plain, server_hostname=NAME) as neighbour,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as other,
        ):
            try:
                assert other.stdin is not None
                assert other.stderr is not None
                _read_until(other.stderr, b"SSLv3/TLS read finished")
                other.stdin.write(b"R\n")
                other.stdin.flush()
                _read_until(other.stderr, b"no renegotiation")
                neighbour.sendall(request())
                assert b" 200 OK" in read_answer(neighbour)
            finally:
                other.kill()


def _read_until(lines: IO[bytes], wanted: bytes) -> None:
    for line in lines:
        if wanted in line.lower() or wanted in line:
            return
    pytest.fail(f"openssl did not say {wanted!r}")


@on_every_tier
@pytest.mark.parametrize("is_encrypted", [True, False])
def test_what_is_kept_of_a_client_is_freed_in_the_moment_it_is_gone(
    authority: Authority, tier: str, is_encrypted: bool
) -> None:
    """Not once the collector comes, which is seldom: OpenSSL's memory is tens of kilobytes for each."""
    sent = request(), request() * 3, request("/slow"), b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123"
    with encrypted(authority, tier) if is_encrypted else running(tier) as started:
        gc.collect()
        gc.disable()
        try:
            for data in sent:
                with started.connect() as plain:
                    client = (
                        authority.context().wrap_socket(plain, server_hostname=NAME)
                        if is_encrypted
                        else plain
                    )
                    client.sendall(data)
                    client.recv(1)
                    client.close()
            eventually(lambda: started.counts.connections == 0)
            eventually(
                lambda: not any(isinstance(one, Connection | TLSTransport) for one in gc.get_objects())
            )
        finally:
            gc.enable()

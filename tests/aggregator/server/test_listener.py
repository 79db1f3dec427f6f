"""The HTTP server around its requests: deadlines, caps, TLS, how it starts and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from deadline import DEADLINE
from running import serving
from running.serving import (
    BIG,
    TIERS,
    FakeService,
    eventually,
    read_all,
    read_answer,
    request,
    running,
    timeless,
)
from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.errors import InvalidConfig, SpecmuxError
from specmux_aggregator.server import connections
from specmux_aggregator.server import listener as server
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.stats import RequestCounts

on_every_tier = pytest.mark.parametrize("tier", TIERS)


def test_start_says_what_it_bound() -> None:
    async def once() -> tuple[str, int]:
        started = HTTPServer(FakeService(), ListenSettings(port=0))
        try:
            return await started.start()
        finally:
            await started.stop()

    host, port = asyncio.run(once())
    assert host == "127.0.0.1"
    assert port > 0


def test_start_fails_in_our_words_when_the_address_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SpecmuxError, match=f"cannot listen on 127.0.0.1:{port}"):
            asyncio.run(HTTPServer(FakeService(), ListenSettings(port=port)).start())


def test_start_refuses_the_pure_python_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    class HttpRequestParser:
        """As aiohttp.http_parser has it."""

    monkeypatch.setattr(server, "HttpRequestParser", HttpRequestParser)
    with pytest.raises(SpecmuxError, match="no C parser"):
        asyncio.run(HTTPServer(FakeService(), ListenSettings(port=0)).start())


@on_every_tier
def test_connection_above_the_cap_is_closed_at_once_where_no_other_is_idle(tier: str) -> None:
    with running(tier, max_connections=2) as started:
        with started.connect() as one, started.connect() as two:
            for client in (one, two):
                client.sendall(request("/hang"))
            eventually(lambda: started.counts.in_flight == 2)
            with started.connect() as three:
                assert read_all(three) == b""
            assert (started.counts.connections_refused, started.counts.idle_closed) == (1, 0)
            started.service.released.set()
            for client in (one, two):
                assert read_answer(client)
        eventually(lambda: started.counts.connections == 0)
        assert b" 200 OK" in started.exchange(request(close=True))


@on_every_tier
def test_connection_that_was_idle_longest_makes_room_for_one_above_the_cap(tier: str) -> None:
    with running(tier, max_connections=3) as started:
        with started.connect() as one, started.connect() as two, started.connect() as three:
            for client in (one, two, three, one):
                client.sendall(request())
                read_answer(client)
                time.sleep(0.02)
            with started.connect() as four:
                four.sendall(request())
                assert read_answer(four)
                assert read_all(two) == b""
                for client in (one, three, four):
                    client.sendall(request())
                    assert read_answer(client)
                assert (started.counts.connections, started.counts.idle_closed) == (3, 1)
        eventually(lambda: started.counts.connections == 0)


@on_every_tier
@pytest.mark.parametrize(
    "sent", [b"", request()[:-2], request() + request()[:-2]], ids=["nothing", "half", "more"]
)
def test_head_that_does_not_end_is_cut_off(tier: str, sent: bytes) -> None:
    with running(tier, header_timeout=0.3, keepalive_timeout=60.0) as started, started.connect() as client:
        client.sendall(sent)
        received = read_all(client)
        assert received.count(b"HTTP/1.1 200 OK") == sent.count(b"\r\n\r\n")
        assert started.counts.header_timeouts == 1


@on_every_tier
def test_head_that_drips_is_cut_off(tier: str) -> None:
    with running(tier, header_timeout=0.3, keepalive_timeout=60.0) as started, started.connect() as client:
        client.sendall(request())
        read_answer(client)
        client.sendall(b"GET /a HTTP/1.1\r\nX: ")
        with pytest.raises(OSError):
            for _ in range(1000):
                client.sendall(b"x")
                time.sleep(0.02)
        assert started.counts.header_timeouts == 1


@on_every_tier
def test_idle_connection_outlives_the_header_timeout_and_ends_with_the_keepalive_timeout(tier: str) -> None:
    patience = 600.0
    limits = {"header_timeout": 0.1, "keepalive_timeout": patience}
    with running(tier, **limits) as started, started.connect() as client:

        def sweep(now: float) -> None:
            started.loop.call_soon_threadsafe(started.server._connections.sweep, now)

        for _ in range(4):  # each answer starts the time anew, in every tier
            asked = time.monotonic()
            client.sendall(request())
            assert read_answer(client)
            time.sleep(0.2)
            sweep(asked + patience)
        sweep(time.monotonic() + patience)
        assert read_all(client) == b""
        assert started.counts.header_timeouts == 0


@on_every_tier
def test_client_that_does_not_read_is_cut_off(tier: str) -> None:
    with running(tier, write_timeout=0.4) as started:
        with started.connect(receive_buffer=4096) as client:
            client.sendall(request("/big") * 8)
            eventually(lambda: started.counts.write_stalls == 1)
            eventually(lambda: started.counts.connections == 0)
            received = read_all(client)
        assert len(received) < 8 * len(BIG)
        eventually(lambda: started.counts.disconnects == 1)


@on_every_tier
@pytest.mark.parametrize("keepalive_timeout", [0.1, 60.0])
def test_client_that_leaves_a_small_answer_unread_is_cut_off(tier: str, keepalive_timeout: float) -> None:
    timeouts = {"write_timeout": 0.4, "keepalive_timeout": keepalive_timeout}
    with running(tier, **timeouts) as started, started.connect(receive_buffer=4096) as client:
        client.sendall(request("/wide") * 40)  # more than the kernel takes
        eventually(lambda: started.counts.write_stalls == 1)
        eventually(lambda: started.counts.connections == 0)


@on_every_tier
def test_client_that_reads_slowly_is_served(tier: str) -> None:
    with running(tier, write_timeout=0.4) as started, started.connect(receive_buffer=16384) as client:
        client.sendall(request("/big", close=True))
        received = b""
        while chunk := client.recv(1 << 16):
            received += chunk
            time.sleep(0.02)
        assert received.endswith(BIG)
        assert started.counts.write_stalls == 0


@on_every_tier
@pytest.mark.parametrize("line", [b"GET /big HTTP/1.1\r\nConnection: close\r\n", b"GET /big HTTP/1.0\r\n"])
def test_last_answer_that_the_kernel_takes_in_parts_leaves_no_trace_in_the_log(
    tier: str, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tier) as started:
        for _ in range(5):
            with started.connect(receive_buffer=4096) as client:
                client.sendall(request("/big") * 8 + line + b"Host: a\r\n\r\n")  # more than the kernel takes
                assert read_all(client).count(BIG) == 9
        eventually(lambda: started.counts.connections == 0)
    assert caplog.text == ""


@on_every_tier
def test_client_that_leaves_ends_the_wait_for_its_answer(tier: str) -> None:
    with running(tier) as started:
        with started.connect() as client:
            client.sendall(request("/hang"))
            eventually(lambda: started.counts.in_flight == 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        eventually(lambda: started.counts.in_flight == 0)
        assert started.counts.disconnects == 1


@on_every_tier
def test_stop_finishes_what_runs_and_closes_what_is_idle(tier: str) -> None:
    with (
        running(tier, shutdown_timeout=DEADLINE) as started,
        started.connect() as idle,
        started.connect() as busy,
    ):
        idle.sendall(request())
        read_answer(idle)
        busy.sendall(request("/hang"))
        eventually(lambda: started.counts.in_flight == 1)
        stopping = asyncio.run_coroutine_threadsafe(started.server.stop(), started.loop)
        assert read_all(idle) == b""
        with pytest.raises(ConnectionRefusedError):
            started.connect()
        started.service.released.set()
        answer = read_all(busy)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nConnection: close\r\n" in answer
        stopping.result(DEADLINE)


@on_every_tier
def test_request_on_its_way_at_the_end_has_an_answer(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LAST_ANSWER", DEADLINE)
    with running(tier, shutdown_timeout=DEADLINE) as started, started.connect() as idle:
        for _ in range(5):
            idle.sendall(request())
            assert b"\r\nConnection: close" not in read_answer(idle)
        stopping = asyncio.run_coroutine_threadsafe(started.server.stop(), started.loop)
        eventually(lambda: started.server._dispatch.is_stopping)
        idle.sendall(request())
        answer = read_all(idle)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nConnection: close\r\n" in answer
        stopping.result(DEADLINE)


@pytest.mark.parametrize("turns", range(6))
def test_client_that_comes_as_the_server_stops_is_answered_or_refused(turns: int) -> None:
    """``turns`` of the event loop later its connection is accepted, or made, or the port is closed."""
    loop = asyncio.new_event_loop()
    started = HTTPServer(FakeService(), ListenSettings(port=0, shutdown_timeout=DEADLINE))
    with socket.socket() as client:
        client.settimeout(DEADLINE)

        async def scenario() -> None:
            address = await started.start()
            stopping = asyncio.create_task(started.stop())
            for _ in range(turns):
                await asyncio.sleep(0)
            with contextlib.suppress(ConnectionRefusedError, BrokenPipeError):
                client.connect(address)
                client.sendall(request())
            await stopping

        loop.run_until_complete(scenario())
        loop.close()
        with contextlib.suppress(OSError):  # ENOTCONN where it was refused
            answer = read_all(client)
            assert answer in (b"", b"<reset>") or answer.startswith(b"HTTP/1.1 200 OK\r\n")


@on_every_tier
def test_client_whose_answer_did_not_announce_the_end_may_ask_once_more(
    tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside a load the client's one more request may take seconds to arrive.
    monkeypatch.setattr(connections, "LAST_ANSWER", 3.0)
    monkeypatch.setattr(serving, "BIG", bytes(8 << 20))  # more than the kernel takes
    with running(tier, shutdown_timeout=DEADLINE) as started, started.connect(receive_buffer=4096) as client:
        client.sendall(request("/big"))
        client.recv(1, socket.MSG_PEEK)
        stopping = asyncio.run_coroutine_threadsafe(started.server.stop(), started.loop)
        time.sleep(3.5)
        assert b"\r\nConnection: close" not in read_answer(client)
        client.sendall(request())
        assert b"\r\nConnection: close\r\n" in read_all(client)
        stopping.result(DEADLINE)


def test_while_clients_ask_the_end_waits_for_slower_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LAST_ANSWER", 2.0)
    monkeypatch.setattr(connections, "LAST_ANSWERS", DEADLINE)
    with running("memoised", shutdown_timeout=DEADLINE) as started, contextlib.ExitStack() as opened:
        clients = [opened.enter_context(started.connect()) for _ in range(3)]
        for client in clients:
            client.sendall(request())
            read_answer(client)
        stopping = asyncio.run_coroutine_threadsafe(started.server.stop(), started.loop)
        for client in clients:
            time.sleep(1.2)
            client.sendall(request())
            assert b"\r\nConnection: close\r\n" in read_all(client)
        stopping.result(DEADLINE)


@on_every_tier
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (("Expect: tea",), 417),
        (("Transfer-Encoding:",), 400),
        (("Transfer-Encoding:  ",), 400),
    ],
)
def test_refused_message_ends_its_connection_and_a_head_has_no_body(
    tier: str, fields: tuple[str, ...], status: int
) -> None:
    with running(tier) as started:
        for method in ("GET", "POST", "HEAD"):
            answer = started.exchange(request("/a", *fields, method=method) + request("/second"))
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
            assert answer.count(b"HTTP/1.1 ") == 1
            head, _, body = answer.partition(b"\r\n\r\n")
            assert b"\r\nConnection: close" in head
            assert (body == b"") is (method == "HEAD")


@on_every_tier
@pytest.mark.parametrize("target", ["/hang", "/big"])
def test_stop_cuts_what_does_not_end_in_time(tier: str, target: str) -> None:
    with running(tier, shutdown_timeout=0.3) as started, started.connect(receive_buffer=4096) as client:
        client.sendall(request(target) * 4)
        if target == "/big":
            client.recv(1, socket.MSG_PEEK)
        else:
            eventually(lambda: started.counts.in_flight == 1)
        started.call(started.server.stop())
        read_all(client)
        eventually(lambda: started.counts.connections == started.counts.in_flight == 0)


def test_slow_request_costs_one_line_without_its_query(caplog: pytest.LogCaptureFixture) -> None:
    with running("memoised", service=FakeService()) as started:
        started.server._dispatch._slow_request = 0.0
        started.exchange(request("/slow?token=s3cret", close=True))
        started.exchange(request("/quick", close=True))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("GET /slow: 200 after 0.")


@on_every_tier
def test_counts_are_kept_on_every_tier(tier: str) -> None:
    def of(counts: RequestCounts) -> dict[tuple[str, str, int], int]:
        return {(cell.route, cell.format, cell.code): sum(cell.buckets) for cell in counts.durations}

    with running(tier) as started, started.connect() as client:
        for target in ("/a", "/a", "/a", "/a", "/big", "/slow"):
            client.sendall(request(target))
            read_answer(client)
        client.sendall(request("/a", 'If-None-Match: "v"'))
        read_answer(client)
        eventually(lambda: sum(of(started.counts).values()) == 7)
        assert of(started.counts) == {
            ("other", "text", 200): 5,
            ("other", "none", 200): 1,
            ("openapi_root", "none", 304): 1,
        }
        assert all(cell.seconds > 0 for cell in started.counts.durations)


def certificate(authority: trustme.CA, folder: Path) -> trustme.LeafCert:
    leaf = authority.issue_cert("127.0.0.1", "localhost")
    leaf.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    leaf.private_key_pem.write_to_path(folder / "tls.key")
    return leaf


@on_every_tier
def test_tls_serves_and_takes_up_a_new_certificate_between_handshakes(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CERTIFICATE_INTERVAL", 0.05)
    monkeypatch.setattr(server, "SWEEP_MAX", 0.25)
    authority = trustme.CA()
    certificate(authority, tmp_path)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_key_file": tmp_path / "tls.key"}

    def connect() -> ssl.SSLSocket:
        return trust.wrap_socket(started.connect(), server_hostname="127.0.0.1")

    def serial() -> str:
        with connect() as client:
            client.sendall(request())
            assert read_answer(client).endswith(b"/a? None None 1\n")
            found = client.getpeercert()
            assert found is not None
            return str(found["serialNumber"])

    with running(tier, **files) as started:
        first = serial()
        with connect() as held:
            (tmp_path / "tls.key").write_text("-----BEGIN PRIVATE KEY-----\nhalf")
            time.sleep(0.6)
            assert serial() == first
            certificate(authority, tmp_path)
            eventually(lambda: serial() != first)
            held.sendall(request("/big"))
            assert read_answer(held).endswith(BIG)


def test_tls_refuses_files_that_are_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("nothing")
    with pytest.raises(InvalidConfig, match="cannot use the certificate"):
        asyncio.run(
            HTTPServer(FakeService(), ListenSettings(port=0, tls_cert_file=tmp_path / "tls.crt")).start()
        )
    with pytest.raises(InvalidConfig, match="No such file"):
        asyncio.run(
            HTTPServer(FakeService(), ListenSettings(port=0, tls_cert_file=tmp_path / "none")).start()
        )


def test_tls_handshake_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    certificate(trustme.CA(), tmp_path)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_key_file": tmp_path / "tls.key"}
    with running("memoised", header_timeout=0.3, **files) as started, started.connect() as client:
        client.sendall(b"\x16\x03\x01")
        assert read_all(client) in (b"", b"<reset>")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
def test_plain_http_on_a_tls_port_is_told_what_the_port_speaks(tmp_path: Path, method: str) -> None:
    certificate(trustme.CA(), tmp_path)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_key_file": tmp_path / "tls.key"}
    with running("memoised", **files) as started:
        answer = timeless(started.exchange(request(method=method)))
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"\r\nConnection: close\r\nDate: ...\r\n\r\n{" in answer
        assert b"this port speaks HTTPS" in answer
        eventually(lambda: started.counts.connections == 0)


def test_every_connection_is_answered_from_the_first_moment_on_over_tls(tmp_path: Path) -> None:
    """One that comes while the server starts was said to have been closed without an answer, once."""
    authority = trustme.CA()
    certificate(authority, tmp_path)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_key_file": tmp_path / "tls.key"}
    for _ in range(5):
        with running("memoised", **files) as started:

            def ask(_: int) -> bytes:
                with trust.wrap_socket(started.connect(), server_hostname="127.0.0.1") as client:
                    client.sendall(request(close=True))
                    return read_all(client)

            with ThreadPoolExecutor(16) as pool:
                answers = list(pool.map(ask, range(48)))
        assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in answers)


def test_plain_text_on_a_tls_port_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificate(trustme.CA(), tmp_path)
    files = {"tls_cert_file": tmp_path / "tls.crt", "tls_key_file": tmp_path / "tls.key"}
    with running("memoised", **files) as started:
        assert b"HTTP/1.1 200" not in started.exchange(b"EHLO a\r\n")
        assert not caplog.records


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc to count descriptors in")
def test_stop_leaves_no_descriptor_behind() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with running("memoised") as started, started.connect() as client:
        for _ in range(3):
            client.sendall(request("/big"))
            read_answer(client)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

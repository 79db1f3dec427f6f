"""A connection that fails by a proxy: the message names it, without its credentials."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from deadline import DEADLINE
from specmux_aggregator.cli import main

SERVER = "https://server.example:6443"
COMMANDS = {
    "cache warm": ("cache", "warm", "--server", SERVER),
    "check": ("check", "--server", SERVER),
    "conformance": ("conformance", SERVER),
    "convert": ("convert", f"{SERVER}/openapi/v2"),
    "get": ("get", "--server", SERVER),
    "status": ("status", "--server", SERVER),
}


@contextmanager
def proxy_that(answers: bytes | None) -> Iterator[str]:
    """The address of a proxy that answers every request so; None: nobody listens there."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    if answers is None:
        listener.close()
        yield address
        return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answers)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield address
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (None, "connection refused"),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "it answered 407"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "it answered 502"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_proxy_is_named(
    command: str, answers: bytes | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy_that(answers) as address:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@{address}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        result = CliRunner().invoke(main, COMMANDS[command])
    assert result.exit_code == 4
    assert f"by the proxy http://{address}: {reason}; is it running? HTTPS_PROXY" in result.output
    assert "secret" not in result.output


def test_a_dead_server_without_a_proxy_is_blamed_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy_that(None) as address:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{address}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        result = CliRunner().invoke(main, ["get", "--server", f"https://{address}"])
    assert "connection refused; is it running, and is this its port?" in result.output

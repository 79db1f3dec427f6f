"""What a user is told to do about a server that cannot be asked: each reason has its own step."""

from __future__ import annotations

import datetime as dt
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner, Result

from deadline import DEADLINE
from fakes.openapi_server import Reference, Reply, Request
from fakes.openapi_thread import serving_in_thread
from shared_data import DATA
from specmux_aggregator import console
from specmux_aggregator.cli import main

DOCUMENT = (
    b'{"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/apis/a.io/v1/ws": {"get":'
    b' {"responses": {"200": {"description": "d"}}}}}}'
)
HERE = "127.0.0.1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("KUBECONFIG", "SPECMUX_SERVER"):
        monkeypatch.delenv(name, raising=False)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="specmux")


class Authority:
    """A CA whose file is trusted, and what it signs."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.file = folder / "ca.crt"
        self.authority.cert_pem.write_to_path(self.file)

    def context(self, name: str = HERE, **more: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(name, **more).configure_cert(context)
        return context


def answers(request: Request) -> Any:
    return Reply(404) if request.path == "/status" else Reference({"apis/a.io/v1": DOCUMENT})(request)


COMMANDS = (("get", "--server"), ("status",))
"""Two ways to a server: the client's, and that of single pages."""


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "page"])
def test_a_name_that_is_not_the_certificates(tmp_path: Path, command: tuple[str, ...]) -> None:
    authority = Authority(tmp_path)
    with serving_in_thread(answers, tls=authority.context("other.example")) as server:
        refused = run(*command, server.url, "--ca-file", authority.file)
        named = run(*command, server.url, "--ca-file", authority.file, "--tls-server-name", "other.example")
    assert refused.exit_code == 4
    assert "give it with --tls-server-name" in refused.output
    assert named.exit_code == (4 if command == ("status",) else 0)
    assert "certificate" not in named.output


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "page"])
def test_a_certificate_that_expired(tmp_path: Path, command: tuple[str, ...]) -> None:
    authority = Authority(tmp_path)
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    with serving_in_thread(answers, tls=authority.context(not_after=past)) as server:
        result = run(*command, server.url, "--ca-file", authority.file)
    assert result.exit_code == 4
    assert "the server needs a new certificate" in result.output


@contextmanager
def handshaking(context: ssl.SSLContext) -> Iterator[str]:
    """Does handshakes, as a server that blocks: its alerts are sent. The URL."""
    listener = socket.create_server((HERE, 0))

    def serve() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
                    wrapped.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"https://{HERE}:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(DEADLINE)


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "page"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_client_certificate(
    tmp_path: Path, command: tuple[str, ...], version: ssl.TLSVersion
) -> None:
    authority = Authority(tmp_path)
    context = authority.context()
    context.verify_mode = ssl.CERT_REQUIRED
    authority.authority.configure_trust(context)
    context.maximum_version = version
    with handshaking(context) as url:
        result = run(*command, url, "--ca-file", authority.file)
    assert result.exit_code == 4
    assert "the server wants a client certificate" in result.output


def test_the_key_of_another_certificate_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = (authority.authority.issue_cert(HERE) for _ in range(2))
    one.cert_chain_pems[0].write_to_path(tmp_path / "one.crt")
    other.private_key_pem.write_to_path(tmp_path / "other.key")
    result = run(
        "get", "--server", "https://127.0.0.1:1", "--client-certificate", tmp_path / "one.crt",
        "--client-key", tmp_path / "other.key",
    )  # fmt: skip
    assert f"other.key: not the private key of the certificate {tmp_path}/one.crt" in result.output


def test_a_redirect_to_a_login_page_is_named() -> None:
    def login(request: Request) -> Reply:
        return Reply(302, headers=[("Location", "https://login.example.com/?next=secret")])

    with serving_in_thread(login) as server:
        result = run("get", "--server", server.url)
    assert "name https://login.example.com/, or log in there" in result.output
    assert "secret" not in result.output


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "page"])
def test_a_server_that_hangs_is_said_and_given_up(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0.05)
    done = threading.Event()

    async def never(request: Request) -> Reply:
        import asyncio

        await asyncio.to_thread(done.wait, 30)
        return Reply()

    with serving_in_thread(never) as server:
        result = run(*command, server.url, "--request-timeout", "0.5")
        done.set()
    assert result.exit_code == 4
    assert f"waiting for {server.url}" in result.output
    assert "no whole answer within 0.5 s; --request-timeout waits longer" in result.output


@pytest.mark.parametrize("words", [["get"], ["search", "ws"], ["get", "a.io/v1"], ["check"]])
def test_a_full_disk_is_one_line(tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "v1.json"
    file.write_bytes(DOCUMENT)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "specmux_aggregator.cli", *words, "--file", str(file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
    if words == ["search", "ws"] and "nothing found" in done.stderr:
        return  # nothing is printed
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "Error: standard output: No space left on device"
    assert "Traceback" not in done.stderr


def _take_interrupts() -> None:
    """Whoever runs the tests may ignore or block SIGINT, which children inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def test_ctrl_c_ends_the_workers_of_a_check_in_silence(tmp_path: Path) -> None:
    words = ["check", "--no-cache", "--jobs", "2", str(DATA / "k8s-pairs/1.35/v3")]
    process = subprocess.Popen(
        [sys.executable, "-m", "specmux_aggregator.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_take_interrupts,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for _ in range(600):
        if len(children.read_text().split()) >= 2:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert said.split() == ["Aborted!"]

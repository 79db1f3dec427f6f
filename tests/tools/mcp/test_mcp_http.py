"""``specmux mcp --http``: on loopback, asked by the SDK's own client, and by nobody under another name."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE
from running.ports import free_port
from tools.mcp.test_mcp import NAME, environment, installed, told, write

pytestmark = installed

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = write(tmp_path_factory.mktemp("documents"), name=NAME)
    free = free_port()
    command = [sys.executable, "-m", "specmux_aggregator.cli", "mcp", "--http", "--port", str(free)]
    server = subprocess.Popen(
        [*command, "--directory", str(folder)],
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(free, server)
        yield free
    finally:
        server.terminate()
        server.wait(DEADLINE)


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(f"it does not listen; exit code {server.poll()}")


async def test_tools_answer_over_http(port: int) -> None:
    import mcp

    async with asyncio.timeout(DEADLINE), mcp.Client(f"http://127.0.0.1:{port}/mcp") as client:
        listed: Any = await client.list_tools()
        assert {"explain", "search", "validate"} <= {each.name for each in listed.tools}
        assert 'DEFAULT:\n    "bed"' in await told(client, "explain", type="bed.spec.name")


@pytest.mark.parametrize(
    ("fields", "is_answered"),
    [
        ({"Host": "127.0.0.1:{port}"}, True),
        ({"Host": "localhost:{port}"}, True),
        ({"Host": "specmux.example.org"}, False),
        ({"Host": "specmux.example.org:{port}"}, False),
        ({"Host": "127.0.0.1:{port}", "Origin": "https://evil.example.org"}, False),
    ],
)
def test_only_this_machine_is_answered(port: int, fields: dict[str, str], is_answered: bool) -> None:
    """A web site that names 127.0.0.1 as its own address sends its own name (DNS rebinding)."""
    sent = {name: value.format(port=port) for name, value in fields.items()}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(connection):
        connection.request("POST", "/mcp", INITIALIZE, {**accept, **sent})
        status = connection.getresponse().status
    assert status == 200 if is_answered else status in (403, 421)


def test_it_listens_on_loopback_alone(port: int) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    addresses = {line.split()[1] for line in listening if line.split()[3] == "0A"}
    assert {each for each in addresses if each.endswith(f":{port:04X}")} == {f"0100007F:{port:04X}"}

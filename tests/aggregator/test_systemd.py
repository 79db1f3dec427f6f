"""What systemd is told, and the sockets that it hands over: real ones."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from deadline import DEADLINE
from running.process import Process, specmux, write_documents
from specmux_aggregator.errors import CannotListen
from specmux_aggregator.process import notify, take_handed_sockets

DOCUMENT = (
    b'{"openapi": "3.0.0", "info": {"title": "t", "version": "v1"}, "paths": {"/apis/example.com/v1/": {}}}'
)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
UNIT = EXAMPLES / "specmux.service"
SOCKET_UNIT = EXAMPLES / "specmux.socket"

HAND_OVER = """
import os, sys
for number, one in enumerate(sys.argv[1].split(",")):
    os.dup2(int(one), 3 + number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(number + 1), LISTEN_FDNAMES="specmux.socket")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""What systemd does between fork and exec."""


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_is_told(tmp_path: Path, is_abstract: bool) -> None:
    name = f"specmux-test-{tmp_path.name}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name}" if is_abstract else name)
        receiver.settimeout(5)
        notify("READY=1", {"NOTIFY_SOCKET": f"@{name}" if is_abstract else name})
        assert receiver.recv(100) == b"READY=1"


def test_without_systemd_nothing_happens(tmp_path: Path) -> None:
    notify("READY=1", {})
    notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "none")})


def test_service_answers_on_sockets_that_systemd_keeps_while_it_restarts(tmp_path: Path) -> None:
    write_documents(tmp_path, {"apis/example.com/v1": DOCUMENT})
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        handed = [first.detach(), second.detach()]
        kept = [socket.socket(fileno=each) for each in handed]
        ports = [each.getsockname()[1] for each in kept]
        clients = [http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE) for port in ports]
        try:
            for each in kept:
                each.set_inheritable(True)
            for _ in range(2):
                # Sent while no process runs: they wait in the sockets, and none is refused.
                for client in clients:
                    client.request("GET", "/livez", headers={"Connection": "close"})
                process = Process(
                    "serve",
                    *("--directory", str(tmp_path), "--listen-port", "1"),
                    under=(sys.executable, "-c", HAND_OVER, ",".join(map(str, handed))),
                    program=("-m", "specmux_aggregator.cli"),
                    close_fds=False,
                )
                try:
                    answers = [client.getresponse() for client in clients]
                    assert [(answer.status, answer.read()) for answer in answers] == [(200, b"ok\n")] * 2
                    assert process.port == ports[0]
                    assert process.stop() == 0
                finally:
                    process.kill()
        finally:
            for one in (*clients, *kept):
                one.close()


def test_sockets_of_another_process_are_left_alone() -> None:
    environment = {"LISTEN_PID": str(os.getppid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x", "HOME": "/"}
    assert take_handed_sockets(environment) == ()
    assert environment == {"HOME": "/"}
    assert take_handed_sockets({}) == ()


def test_descriptor_that_cannot_be_served_on_is_refused() -> None:
    with socket.socket(socket.AF_UNIX) as unix, socket.socket() as idle, Path("/dev/null").open("rb") as file:
        for one, message in (
            (unix.detach(), "does not listen for TCP: the socket unit needs ListenStream="),
            (idle.detach(), "does not listen for TCP"),
            (file.fileno(), "is no socket"),
        ):
            environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
            with pytest.raises(CannotListen, match=f"the descriptor {one} of LISTEN_FDS {message}"):
                take_handed_sockets(environment, first=one)
    with pytest.raises(CannotListen, match="LISTEN_FDS is no number: 'one'"):
        take_handed_sockets({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "one"})


def test_handed_socket_is_not_inherited_by_workers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
        (taken,) = take_handed_sockets(environment, first=listening.detach())
        with taken:
            assert not taken.get_inheritable()


@pytest.mark.skipif(which("systemd-analyze") is None, reason="no systemd-analyze on PATH")
def test_the_units_are_ones_that_systemd_takes(tmp_path: Path) -> None:
    for unit in (UNIT, SOCKET_UNIT):
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/specmux/bin/specmux", "/bin/true"))
    copies = [str(tmp_path / unit.name) for unit in (UNIT, SOCKET_UNIT)]
    done = subprocess.run(
        ["systemd-analyze", "verify", *copies], capture_output=True, text=True, timeout=DEADLINE
    )
    assert [line for line in done.stderr.splitlines() if "specmux." in line] == []


def system_calls(name: str) -> set[str]:
    """Of a set such as ``@resources``, with those in it."""
    done = subprocess.run(
        ["systemd-analyze", "syscall-filter", name],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    lines = [line.strip() for line in done.stdout.splitlines()[1:]]
    found = {line for line in lines if line and line[0] not in "#@"}
    return found.union(*(system_calls(line) for line in lines if line.startswith("@")))


@pytest.mark.long
@pytest.mark.skipif(not (which("systemd-analyze") and which("strace")), reason="no systemd-analyze or strace")
def test_the_unit_allows_what_the_service_calls(tmp_path: Path) -> None:
    """Anything else kills the process that calls it, or a worker without a word."""
    rules = re.findall(r"^SystemCallFilter=(~?)(.+)$", UNIT.read_text(), re.MULTILINE)
    allowed = system_calls("@default")
    for denies, names in rules:
        told = set().union(*map(system_calls, names.split()))
        allowed = allowed - told if denies else allowed | told
    if os.geteuid() == 0:
        allowed |= {"fchown"}  # SQLite, as root alone
    write_documents(tmp_path / "documents", {"apis/example.com/v1": DOCUMENT})
    counts = tmp_path / "counts"
    places = ("--directory", str(tmp_path / "documents"), "--state-dir", str(tmp_path / "state"))
    with specmux(
        *("serve", "--listen-port", "0", *places), under=("strace", "-f", "-qq", "-c", "-o", str(counts))
    ) as process:
        process.until_ready()
        (target,) = process.paths().values()
        for path in (target, "/openapi/search?q=a", "/openapi/ui/", "/schemas/index.json"):
            process.until(lambda path=path: process.get(path)[0] == 200, path)
        assert process.get(target, Accept="application/cbor")[0] == 200
        for child in subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True).split():
            os.kill(int(child), signal.SIGTERM)
        process.wait()
    called = set(re.findall(r"^ *[\d.]+ .* (\w+)$", counts.read_text(), re.MULTILINE)) - {"total"}
    assert {"setpriority", "execve"} <= called
    assert called - allowed == set()

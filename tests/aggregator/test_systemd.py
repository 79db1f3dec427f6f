"""What systemd is told, over a real socket."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from shutil import which

import pytest

from running.process import specmux, write_documents
from specmux_aggregator.process import notify

DOCUMENT = (
    b'{"openapi": "3.0.0", "info": {"title": "t", "version": "v1"}, "paths": {"/apis/example.com/v1/": {}}}'
)
UNIT = Path(__file__).resolve().parents[2] / "examples" / "specmux.service"


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


@pytest.mark.skipif(which("systemd-analyze") is None, reason="no systemd-analyze on PATH")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/specmux/bin/specmux", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []


def system_calls(name: str) -> set[str]:
    """Of a set such as ``@resources``, with those in it."""
    done = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, timeout=60, check=True
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

"""What systemd is told, over a real socket."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from shutil import which

import pytest

from specmux_aggregator.systemd import notify

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

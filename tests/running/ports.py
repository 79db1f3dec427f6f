"""Ports for servers whose address has to be known before they start."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 20_000
TRIES = 100


def free_port() -> int:
    """A port below those that the kernel gives to clients and to servers on port 0, so that none of them
    takes it before its server does."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(TRIES):
        port = random.randrange(LOWEST, max(end, LOWEST + 1000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port in {TRIES} tries")

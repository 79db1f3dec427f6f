"""Tells systemd how the service is (sd_notify(3)); nothing where no systemd waits for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """``READY=1``, ``STOPPING=1`` and the like. An unreachable systemd is no failure of ours."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading "@" means Linux' abstract namespace, whose names begin with a zero byte.
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(path)
            sender.sendall(state.encode())
    except OSError:
        return

"""Report the state of the service to systemd (sd_notify(3)), if systemd started it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """``READY=1``, ``STOPPING=1`` and so on. An unreachable systemd is ignored."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading "@" means Linux' abstract namespace, where names begin with a zero byte.
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(path)
            sender.sendall(state.encode())
    except OSError:
        return

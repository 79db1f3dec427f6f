"""Servers with which no TLS handshake succeeds."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from deadline import DEADLINE

HELD: Final = 400
"""Connections that are left hanging at a time."""


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def reset_in_the_midst(client: socket.socket) -> None:
    client.settimeout(1.0)
    with contextlib.suppress(OSError):
        client.recv(100)
    reset(client)


def cut(client: socket.socket) -> None:
    client.close()


def talk(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    client.close()


def hang(client: socket.socket) -> None:
    """Left open; whoever accepted it closes it in the end."""


@contextmanager
def handshakes_that(fail: Callable[[socket.socket], None]) -> Iterator[int]:
    """Port of a server whose connections all end so."""
    accepted: deque[socket.socket] = deque()
    with socket.create_server(("127.0.0.1", 0), backlog=500) as listening:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    accepted.append(client)
                    fail(client)
                    if len(accepted) > HELD:  # its client has given up long ago
                        accepted.popleft().close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE)
            for client in accepted:
                client.close()


FAILURES: Final = (reset, reset_in_the_midst, cut, talk, hang)

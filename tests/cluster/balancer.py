"""One address with several servers behind it: each connection goes to the next that takes it."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator


class Balancer:
    """Passes bytes on, and knows nothing of what they are."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self._turns = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connected()
            if server is None:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()

    def _connected(self) -> socket.socket | None:
        turn = next(self._turns)
        for offset in range(len(self._ports)):
            port = self._ports[(turn + offset) % len(self._ports)]
            with contextlib.suppress(OSError):
                server = socket.create_connection(("127.0.0.1", port), timeout=5)
                server.settimeout(None)
                return server
        return None


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := one.recv(65536):
            other.sendall(chunk)
    for each in (one, other):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


@contextlib.contextmanager
def balancing(*ports: int) -> Iterator[Balancer]:
    balancer = Balancer(*ports)
    try:
        yield balancer
    finally:
        balancer.close()

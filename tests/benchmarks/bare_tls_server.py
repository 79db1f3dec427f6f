"""The least that a TLS server in Python does: accept, shake hands, give each read one fixed answer, close.

What it costs beside nginx is what the event loop, Python's ssl and OpenSSL leave to win; what a service costs
beside it is that service's own. It knows no HTTP, no limits and no flow control::

    python bare_tls_server.py CERTIFICATE BYTES   # prints its port; CERTIFICATE holds chain and key
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from pathlib import Path

BACKLOG = 1024
RECORD = 16 * 1024


class Bare(asyncio.Protocol):
    """One connection. The two buffers are shared by all, as in the service's own transport."""

    __slots__ = ("is_done", "tls", "wire")

    answer: bytes
    context: ssl.SSLContext
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire: asyncio.Transport = transport  # type: ignore[assignment]
        self.is_done = False
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def data_received(self, data: bytes) -> None:
        self.incoming.write(data)
        if not self.is_done:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.wire.write(self.outgoing.read())
                return
            self.is_done = True
            self.wire.write(self.outgoing.read())
            if not self.incoming.pending:
                return
        self.tls.read(RECORD)
        self.tls.write(self.answer)
        self.wire.write(self.outgoing.read())


async def serve(certificate: Path, size: int) -> None:
    Bare.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Bare.context.load_cert_chain(certificate)
    Bare.context.num_tickets = 1
    Bare.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b" " * size
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))

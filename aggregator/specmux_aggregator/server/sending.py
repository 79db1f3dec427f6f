"""Write answers into a socket: as much as the kernel takes, with almost nothing queued in the process.

Copying is most of the cost of a large answer, so a body requested repeatedly has a memory file
(``body_files``).
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

JOINED_MAX: Final = 16 * 1024
"""The largest body that is copied behind its head: above it, writing several pieces is cheaper."""

WHOLE_MAX: Final = 128 * 1024
"""The largest body that is queued in one piece with its head."""

FIRST: Final = 16 * 1024
"""Bytes of a larger body that are queued with its head."""

SLICE: Final = 64 * 1024
"""Bytes of one piece of a larger body, if the transport has to queue it."""

KICK: Final = 16 * 1024
"""Bytes queued after the kernel refused more, so that the transport reports when they are sent."""


def write(transport: asyncio.Transport, file: int, head: bytes, end: bytes, body: bytes) -> int:
    """Write an answer without copying it; returns the number of body bytes handed over. ``file``: the
    descriptor of the transport's unencrypted socket. ``body`` is longer than FIRST."""
    if transport.is_closing() or transport.get_write_buffer_size():
        rest = body if len(body) <= WHOLE_MAX else memoryview(body)[:FIRST]
        transport.write(b"".join((head, end, rest)))
        return len(rest)
    ahead = len(head) + len(end)
    try:
        taken = os.writev(file, (head, end, body))
    except OSError:  # full or closed: the transport notices and reports it
        taken = 0
    if taken >= ahead:
        return taken - ahead
    transport.write(b"".join((head, end, body[:FIRST]))[taken:])
    return FIRST


class BorrowedSocket(socket.socket):
    """The socket of a transport, for operations that the transport lacks. The transport remains its owner."""

    __slots__ = ()

    def __del__(self) -> None:
        self.detach()


def lead(transport: asyncio.Transport, wire: BorrowedSocket, head: bytes) -> None:
    """Write a head so that it is sent together with the first bytes of the body, which must follow at once.
    The transport of ``wire`` must have nothing queued."""
    try:
        taken = wire.send(head, socket.MSG_MORE)
    except OSError:  # full or closed: the transport notices and reports it
        taken = 0
    if taken < len(head):
        transport.write(head[taken:])


def push(transport: asyncio.Transport, wire: int | None, body: bytes, sent: int, file: int | None) -> int:
    """Hand over ``body`` from ``sent`` on until the transport queues something; returns the new offset.

    The transport's high-water mark must be 0, so that ``pause_writing`` reports queued data and
    ``resume_writing`` an empty queue. ``file`` holds the same bytes; ``wire`` is the descriptor of the
    transport's socket, None if it is encrypted.
    """
    size, view = len(body), memoryview(body)
    while sent < size and not transport.get_write_buffer_size() and not transport.is_closing():
        piece = SLICE
        if wire is not None:
            try:
                if file is None:
                    taken = os.write(wire, view[sent:])
                else:
                    taken = os.sendfile(wire, file, sent, size - sent)
            except OSError:  # full or closed: the transport notices and reports it
                taken = 0
            if taken:
                sent += taken
                continue
            piece = KICK
        transport.write(view[sent : sent + piece])
        sent += piece
    return min(sent, size)

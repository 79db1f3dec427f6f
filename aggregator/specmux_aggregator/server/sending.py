"""Answers on their way into a socket: as much as the kernel takes, and next to nothing queued by us.

The copy is most of what a large answer costs: a body that is asked for again has a memory file
(``body_files``).
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

JOINED_MAX: Final = 16 * 1024
"""Bytes of a body that is copied behind its head: above, to hand over several pieces costs less."""

WHOLE_MAX: Final = 128 * 1024
"""Bytes of a body that is queued in one piece with its head, where it has to be queued."""

FIRST: Final = 16 * 1024
"""Bytes of a larger body that are queued with its head."""

SLICE: Final = 64 * 1024
"""Bytes of one piece of a larger body, where a transport has to take it."""

KICK: Final = 16 * 1024
"""Bytes queued after the kernel refused more: the transport says when they are gone."""


def write(transport: asyncio.Transport, file: int, head: bytes, end: bytes, body: bytes) -> int:
    """Write an answer without copying it; returns how many bytes of its body are handed over. ``file``: the
    descriptor of the transport's socket, a plain one. ``body`` is longer than FIRST."""
    if transport.is_closing() or transport.get_write_buffer_size():
        rest = body if len(body) <= WHOLE_MAX else memoryview(body)[:FIRST]
        transport.write(b"".join((head, end, rest)))
        return len(rest)
    ahead = len(head) + len(end)
    try:
        taken = os.writev(file, (head, end, body))
    except OSError:  # full, or gone: the transport finds out which, and says so in its own way
        taken = 0
    if taken >= ahead:
        return taken - ahead
    transport.write(b"".join((head, end, body[:FIRST]))[taken:])
    return FIRST


class BorrowedSocket(socket.socket):
    """The socket of a transport, for what that has no word for. It stays the transport's to close."""

    __slots__ = ()

    def __del__(self) -> None:
        self.detach()


def lead(transport: asyncio.Transport, wire: BorrowedSocket, head: bytes) -> None:
    """Write a head so that it leaves together with the first bytes of the body, which have to follow at once.
    Nothing may be queued by ``transport``, whose socket ``wire`` is."""
    try:
        taken = wire.send(head, socket.MSG_MORE)
    except OSError:  # full, or gone: the transport finds out which, and says so in its own way
        taken = 0
    if taken < len(head):
        transport.write(head[taken:])


def push(transport: asyncio.Transport, wire: int | None, body: bytes, sent: int, file: int | None) -> int:
    """Hand over ``body`` from ``sent`` on until the transport queues something; returns the new offset.

    The transport's high-water mark must be 0: what it queues it then reports by ``pause_writing``, and
    ``resume_writing`` means that nothing is queued any more. ``file`` holds the same; ``wire`` is the
    descriptor of the transport's socket, None where that is not a plain one.
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
            except OSError:  # full, or gone: the transport finds out which, and says so in its own way
                taken = 0
            if taken:
                sent += taken
                continue
            piece = KICK
        transport.write(view[sent : sent + piece])
        sent += piece
    return min(sent, size)

"""What the service and an acceptor tell each other: packets of a Unix socket that carry descriptors, and a
number in shared memory. Both ends are one program of one user, so a packet is a pickled value."""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import socket
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final
from weakref import WeakKeyDictionary, finalize

from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.server.stats import RequestCounters, RequestCounts

PACKET_MAX: Final = 384 * 1024
"""Bytes of the largest packet: more than a body without a memory file, and less than the kernel's default
bound, twice 208 KiB."""

COUNTED: Final = [each.name for each in fields(RequestCounters) if each.metadata]
"""The counters that acceptors report; the rest are not theirs, or of one moment."""


@dataclass(frozen=True, slots=True)
class PassedConnection:
    """To an acceptor: a client's connection, the request that waits on it, and its answer. Descriptors: the
    connection; the memory file of the body, if the answer has none."""

    holder: int
    """The place that the service keeps for the connection until it hears of it again."""
    data: bytes
    generation: int
    answer: PreparedAnswer
    size: int
    """Bytes of the body."""


@dataclass(frozen=True, slots=True)
class ReturnedConnection:
    """To the service: a connection, and bytes of it that are not answered; without a descriptor, its end."""

    holder: int
    data: bytes = b""


Message = PassedConnection | ReturnedConnection | RequestCounts | None
"""Counts: since those before. None to an acceptor: return every connection, and end. None from the keeper: a
new acceptor, whose socket is the descriptor."""


def socket_pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in pair:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_MAX)
    return pair


def send(to: socket.socket, message: Message, descriptors: Sequence[int] = (), *, flags: int = 0) -> None:
    """Raises OSError, with MSG_DONTWAIT also for a socket that is full. The descriptors stay open here."""
    # Python 3.11's send_fds and recv_fds ignore their flags.
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))
    to.sendmsg([pickle.dumps(message)], [rights] if descriptors else [], flags)


def receive(wire: socket.socket) -> Iterator[tuple[Message, list[int]]]:
    """What has arrived, with descriptors that the caller owns; at the end of ``wire`` it is closed."""
    flags = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
    for _ in range(64):  # the rest in another turn
        try:
            packet, ancillary, _, _ = wire.recvmsg(
                PACKET_MAX, socket.CMSG_LEN(2 * array("i").itemsize), flags
            )
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            asyncio.get_running_loop().remove_reader(wire)
            wire.close()
            return
        descriptors = array("i", b"".join(rights for _, _, rights in ancillary)).tolist()
        yield pickle.loads(packet), descriptors  # noqa: S301  # of this program


def adopt(client: socket.socket, made: Callable[[], Any], tasks: set[asyncio.Task[Any]]) -> None:
    """Serve a client's connection of the other process. ``tasks`` has the task until it is done."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(loop.connect_accepted_socket(made, client))
    tasks.add(task)
    task.add_done_callback(tasks.discard)


class SharedGeneration:
    """The service's generation, in memory that its acceptors share."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")

    @property
    def generation(self) -> int:
        return self._number[0]

    def set(self, generation: int) -> None:
        self._number[0] = generation


class SharedFiles:
    """Memory files of bodies, made by the service; otherwise as ``body_files.BodyFiles``."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[mmap.mmap, int] = WeakKeyDictionary()

    def map(self, number: int, size: int) -> mmap.mmap:
        """The body in a file, read as bytes are. Takes ownership of the descriptor ``number``."""
        # Private: until Linux 6.7 a file sealed against writing has no other mapping.
        body = mmap.mmap(number, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self._numbers[body] = number
        finalize(body, os.close, number)
        return body

    def file_of(self, body: mmap.mmap) -> int | None:
        return self._numbers.get(body)

    find = file_of

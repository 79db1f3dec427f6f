"""Memory files of large bodies, and what is handed over in pieces."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from running.serving import FakeService, read_all, request, running
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import Prepared, prepare
from specmux_aggregator.server import sending
from specmux_aggregator.server.sending import (
    FILED_MIN,
    HAS_MEMORY_FILES,
    BodyFiles,
    BorrowedSocket,
    lead,
    push,
    write,
)

pytestmark = pytest.mark.skipif(not HAS_MEMORY_FILES, reason="no memory files on this system")


@pytest.fixture
def files() -> Iterator[BodyFiles]:
    kept = BodyFiles()
    yield kept
    kept.clear()


def test_body_has_a_file_from_its_second_sight_on(files: BodyFiles) -> None:
    body = os.urandom(300_000)
    assert files.file_of(body) is None
    file = files.file_of(body)
    assert file is not None
    assert os.pread(file, 2 * len(body), 0) == body
    assert files.file_of(body) == file


def test_files_are_bounded_and_the_least_recent_goes(
    files: BodyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "FILES_MAX", 1_000_000)
    monkeypatch.setattr(sending, "SIGHTS", 1)
    bodies = [os.urandom(300_000) for _ in range(4)]
    opened = [(files.file_of(body), files.file_of(body))[1] for body in bodies[:3]]
    assert None not in opened
    assert files.file_of(bodies[0]) == opened[0]
    files.file_of(bodies[3])
    newest = files.file_of(bodies[3])
    assert newest is not None
    assert os.pread(newest, 400_000, 0) == bodies[3]
    assert files.file_of(bodies[0]) == opened[0]
    assert files.file_of(bodies[1]) is None


def test_body_above_the_bound_has_no_file(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "FILES_MAX", 40_000)
    body = os.urandom(40_001)
    assert [files.file_of(body) for _ in range(3)] == [None] * 3


def test_small_body_has_no_file(files: BodyFiles) -> None:
    small, least = bytes(FILED_MIN - 1), bytes(FILED_MIN)
    assert [files.file_of(small) for _ in range(3)] == [None] * 3
    assert [files.file_of(least) is None for _ in range(3)] == [True, False, False]


def test_descriptors_are_bounded(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "FILES_COUNT_MAX", 2)
    monkeypatch.setattr(sending, "SIGHTS", 1)
    bodies = [os.urandom(FILED_MIN) for _ in range(3)]
    opened = [(files.file_of(body), files.file_of(body))[1] for body in bodies]
    assert None not in opened
    assert [files.file_of(body) for body in bodies] == [None, *opened[1:]]


def test_body_is_copied_when_descriptors_ran_out(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", refuse)
    body = os.urandom(40_000)
    assert [files.file_of(body) for _ in range(3)] == [None] * 3


HUGE = bytes(range(256)) * 48 * 1024
"""12 MiB: more than the kernel takes before anybody reads."""


class Huge(FakeService):
    def answer(self, asked: Request) -> Prepared:
        return prepare(200, [("ETag", '"huge"')], HUGE)


def test_answer_that_is_read_slowly_has_no_file_before_it_is_asked_for_again() -> None:
    with running(service=Huge()) as started:
        shared: Any = started.server._connections
        for kept in (0, 1):
            with started.connect(receive_buffer=4096) as client:
                client.sendall(request("/huge", close=True))
                time.sleep(0.05)  # the kernel is full, and says so before it has the rest
                assert read_all(client).endswith(HUGE)
            assert len(shared.files._files) == kept


def test_clear_closes_the_files(files: BodyFiles) -> None:
    body = os.urandom(40_000)
    files.file_of(body)
    file = files.file_of(body)
    assert file is not None
    files.clear()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


PIECES = (b"head\r\n", b"\r\n", bytes(range(256)) * 2_000)


@pytest.mark.parametrize("rounds", [1, 40], ids=["taken at once", "more than the kernel takes"])
def test_pieces_leave_in_order_whatever_the_kernel_takes(rounds: int) -> None:
    async def scenario() -> bytes:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
        transport.set_write_buffer_limits(high=0)
        for _ in range(rounds):
            sent = write(transport, ours.fileno(), *PIECES)
            transport.write(PIECES[2][sent:])
        received = asyncio.create_task(asyncio.to_thread(read_all, theirs))
        transport.close()
        with theirs:
            return await received

    assert asyncio.run(scenario()) == b"".join(PIECES) * rounds


def test_nothing_is_written_by_the_side_of_a_transport_that_closes() -> None:
    async def scenario() -> bytes:
        ours, theirs = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        transport.close()
        write(transport, ours.fileno(), *PIECES)
        await asyncio.sleep(0.01)
        with theirs:
            return await asyncio.to_thread(read_all, theirs)

    assert asyncio.run(scenario()) in (b"", b"".join(PIECES))


@pytest.mark.parametrize("rounds", [1, 40], ids=["taken at once", "more than the kernel takes"])
def test_head_and_file_leave_in_order_whatever_the_kernel_takes(rounds: int, files: BodyFiles) -> None:
    head, end, body = PIECES
    files.file_of(body)
    file = files.file_of(body)
    assert file is not None

    async def scenario() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours = socket.create_connection(listener.getsockname())
            theirs, _ = listener.accept()
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        transport.set_write_buffer_limits(high=0)
        wire = BorrowedSocket(fileno=ours.fileno())
        for _ in range(rounds):
            lead(transport, wire, head + end)
            sent = push(transport, ours.fileno(), body, 0, file)
            transport.write(body[sent:])
            if transport.get_write_buffer_size():
                break
        received = asyncio.create_task(asyncio.to_thread(read_all, theirs))
        transport.close()
        with theirs:
            return await received

    whole = b"".join(PIECES)
    received = asyncio.run(scenario())
    assert received == whole * (len(received) // len(whole))
    assert len(received) >= len(whole)


def test_borrowed_socket_stays_open_when_it_is_forgotten() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire = BorrowedSocket(fileno=ours.fileno())
        wire.send(b"a")
        del wire
        ours.send(b"b")
        assert theirs.recv(2) == b"ab"

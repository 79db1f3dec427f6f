"""Memory files of large bodies, and what is handed over in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from running.serving import BIG, FakeService, read_all, request, running
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server import body_files
from specmux_aggregator.server.body_files import FILED_MIN, HAS_MEMORY_FILES, BodyFiles
from specmux_aggregator.server.outgoing import (
    BorrowedSocket,
    lead,
    push,
    write,
)
from specmux_aggregator.server.stats import RequestStats

pytestmark = pytest.mark.skipif(not HAS_MEMORY_FILES, reason="no memory files on this system")


@pytest.fixture
def files() -> Iterator[BodyFiles]:
    kept = BodyFiles(RequestStats())
    yield kept
    kept.clear()


def test_body_has_a_file_from_its_second_sight_on(files: BodyFiles) -> None:
    body = os.urandom(300_000)
    assert files.file_of(body) is None
    file = files.file_of(body)
    assert file is not None
    assert os.pread(file, len(body), 0) == body
    assert files.file_of(body) == file


def test_files_are_bounded_and_the_least_recent_goes(
    files: BodyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_files, "FILES_MAX", 1_000_000)
    monkeypatch.setattr(body_files, "SIGHTS", 1)
    bodies = [os.urandom(300_000) for _ in range(4)]
    opened = [(files.file_of(body), files.file_of(body))[1] for body in bodies[:3]]
    assert None not in opened
    assert files.file_of(bodies[0]) == opened[0]
    files.file_of(bodies[3])
    newest = files.file_of(bodies[3])
    assert newest is not None
    assert os.pread(newest, len(bodies[3]), 0) == bodies[3]
    assert files.file_of(bodies[0]) == opened[0]
    assert files.file_of(bodies[1]) is None


def numbers_of_bodies() -> set[int]:
    """As hung_handshakes.py looks for them from outside."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the folder's own descriptor
            if "specmux-body" in str(link.readlink()):
                found.add(int(link.name))
    return found


def test_number_that_holds_no_body_any_more_was_closed_by_us_or_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From outside a file that makes room for another looks lost where the other has another number."""
    monkeypatch.setattr(body_files, "FILES_MAX", 1_000_000)
    monkeypatch.setattr(body_files, "SIGHTS", 1)
    stats = RequestStats()
    files = BodyFiles(stats)
    bodies = [os.urandom(300_000) for _ in range(4)]
    lower = os.open(os.devnull, os.O_RDONLY)  # as of a connection that ends meanwhile
    first, second, _ = [(files.file_of(body), files.file_of(body))[1] for body in bodies[:3]]
    before = numbers_of_bodies()
    os.close(lower)
    assert (files.file_of(bodies[3]), files.file_of(bodies[3]))[1] == lower
    assert before - numbers_of_bodies() == {first}
    assert stats.body_files_lost == 0
    assert second is not None
    os.close(second)
    files.clear()
    assert stats.body_files_lost == 1


def test_body_above_the_bound_has_no_file(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_files, "FILES_MAX", 300_000)
    body = os.urandom(300_001)
    assert [files.file_of(body) for _ in range(3)] == [None] * 3


def test_small_body_has_no_file(files: BodyFiles) -> None:
    small, least = bytes(FILED_MIN - 1), bytes(FILED_MIN)
    assert [files.file_of(small) for _ in range(3)] == [None] * 3
    assert [files.file_of(least) is None for _ in range(3)] == [True, False, False]


def test_descriptors_are_bounded(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_files, "FILES_COUNT_MAX", 2)
    monkeypatch.setattr(body_files, "SIGHTS", 1)
    bodies = [os.urandom(FILED_MIN) for _ in range(3)]
    opened = [(files.file_of(body), files.file_of(body))[1] for body in bodies]
    assert None not in opened
    assert [files.file_of(body) for body in bodies] == [None, *opened[1:]]


def test_body_is_copied_when_descriptors_ran_out(files: BodyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, flags: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", refuse)
    body = os.urandom(300_000)
    assert [files.file_of(body) for _ in range(3)] == [None] * 3


HUGE = bytes(range(256)) * 48 * 1024
"""12 MiB: more than the kernel takes before anybody reads."""


class Huge(FakeService):
    def answer(self, asked: Request) -> PreparedAnswer:
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
    body = os.urandom(300_000)
    files.file_of(body)
    file = files.file_of(body)
    assert file is not None
    files.clear()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_file_is_never_changed(files: BodyFiles) -> None:
    body = os.urandom(300_000)
    files.file_of(body)
    file = files.file_of(body)
    assert file is not None
    with pytest.raises(OSError, match="Operation not permitted"):
        os.pwrite(file, b"x", 0)


class Takers:
    """What may have the number of a file that somebody closed."""

    @staticmethod
    def nobody(number: int) -> None:
        os.close(number)

    @staticmethod
    def another_file(number: int) -> None:
        with tempfile.TemporaryFile() as other:
            other.write(bytes(300_000))
            other.flush()
            os.dup2(other.fileno(), number)

    @staticmethod
    def another_body(number: int) -> None:
        other = os.memfd_create("specmux-body")
        os.truncate(other, os.fstat(number).st_size + (1 << 25))
        os.dup2(other, number)
        os.close(other)

    @staticmethod
    def socket(number: int) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            os.dup2(ours.fileno(), number)


TAKERS = [Takers.nobody, Takers.another_file, Takers.another_body, Takers.socket]


@pytest.mark.parametrize("take", TAKERS)
@pytest.mark.parametrize("noticed_by", ["asked", "held", "evicted", "cleared"])
def test_number_that_is_somebody_elses_is_neither_sent_nor_closed(
    take: Callable[[int], None],
    noticed_by: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(body_files, "FILES_COUNT_MAX", 2)
    monkeypatch.setattr(body_files, "SIGHTS", 1)
    stats = RequestStats()
    files = BodyFiles(stats)
    bodies = [os.urandom(300_000) for _ in range(3)]
    numbers = [(files.file_of(body), files.file_of(body))[1] for body in bodies[:2]]
    for number in numbers:
        assert number is not None
        take(number)
    taken = [identity(number) for number in numbers]
    match noticed_by:
        case "asked":
            assert [files.file_of(body) for body in bodies[:2]] == [None, None]
        case "held":
            assert [files.find(body) for body in bodies[:2]] == [None, None]
        case "evicted":
            for _ in range(2):
                files.file_of(bodies[2])
    files.clear()
    assert [identity(number) for number in numbers] == taken
    assert stats.snapshot().body_files_lost == 2
    assert len(caplog.messages) == 1
    for number, who in zip(numbers, taken, strict=True):
        if who is not None and number is not None:
            os.close(number)


def identity(number: int | None) -> tuple[int, int] | None:
    """Which file a number is; None: it is closed."""
    try:
        status = os.fstat(-1 if number is None else number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@pytest.mark.parametrize("take", TAKERS)
def test_answer_is_its_body_when_something_closed_its_file(take: Callable[[int], None]) -> None:
    with running() as started:

        def big() -> bytes:
            with started.connect() as client:
                client.sendall(request("/big", close=True))
                return read_all(client)

        first, second = big(), big()
        assert first.endswith(BIG)
        assert second.endswith(BIG)
        shared: Any = started.server._connections
        (file,) = shared.files._files.values()
        took = started.call(taken_in_turn(take, file.number))
        assert [big().endswith(BIG) for _ in range(3)] == [True] * 3
        assert started.counts.body_files_lost == 1
        assert identity(file.number) == took or took is None
        if took is not None:
            os.close(file.number)


async def taken_in_turn(take: Callable[[int], None], number: int) -> tuple[int, int] | None:
    """On the loop of the server, so that nothing is being sent meanwhile."""
    take(number)
    return identity(number)


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

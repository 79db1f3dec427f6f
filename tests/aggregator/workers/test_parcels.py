"""Large bytes reach a worker process without being pickled, and by pickling where there is no other way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.workers import parcels as module
from specmux_aggregator.workers.parcels import LARGE, Parcel, ParcelLost, parcels, received
from specmux_aggregator.workers.worker import Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memfd_create(2)")

SMALL, BODY = b"s" * LARGE, os.urandom(3 * LARGE)


def length(*bodies: bytes) -> list[int]:
    return [len(body) for body in bodies]


def echoed(body: bytes) -> bytes:
    return body


def failing(body: bytes) -> None:
    raise OSError(str(len(body)))


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_large_values_are_parcels_while_they_are_sent() -> None:
    before = open_files()
    with parcels((SMALL, BODY, "text", 7)) as (small, parcel, text, number):
        assert (small, text, number) == (SMALL, "text", 7)
        assert isinstance(parcel, Parcel)
        assert received(parcel) == received(parcel) == BODY
        assert received(text) is text
    assert open_files() == before
    with pytest.raises(ParcelLost):
        received(parcel)


@pytest.mark.parametrize("how", ["parcels", "no such files", "not allowed"])
async def test_a_worker_gets_what_was_sent(monkeypatch: pytest.MonkeyPatch, how: str, tmp_path: Path) -> None:
    if how == "no such files":
        monkeypatch.delattr(os, "memfd_create")
    if how == "not allowed":
        # A number that the worker finds nothing under.
        monkeypatch.setattr(module, "_path", lambda number: str(tmp_path / str(number)))

    worker = Worker(timeout=60.0)
    try:
        assert await worker.run(length, SMALL) == [len(SMALL)]
        before = open_files()  # the pool's own among them
        for _ in range(2):
            assert await worker.run(length, BODY, SMALL) == [len(BODY), len(SMALL)]
            assert await worker.run(echoed, BODY) == BODY
        assert open_files() <= before
    finally:
        await worker.close()


async def test_a_function_that_fails_is_told_as_ever() -> None:
    worker = Worker(timeout=60.0)
    try:
        with pytest.raises(WorkerFailed, match="OSError"):
            await worker.run(failing, BODY)
    finally:
        await worker.close()

"""Connections that the kernel does not hand out: told once, and room made."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from typing import Any

import pytest

from running.serving import eventually, read_answer, request, running
from specmux_aggregator.server.listener import ROOM, TOLD, AcceptErrors
from specmux_aggregator.server.stats import RequestStats

FULL = {"message": TOLD, "exception": OSError(errno.EMFILE, os.strerror(errno.EMFILE))}


async def test_a_thousand_errors_are_one_line_and_room_is_made_once(caplog: pytest.LogCaptureFixture) -> None:
    stats, made = RequestStats(), []

    def make_room() -> bool:
        made.append(1)
        return True

    handler = AcceptErrors(stats, make_room)
    for _ in range(1000):
        handler(asyncio.get_running_loop(), dict(FULL))
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "Too many open files" in caplog.records[0].getMessage()
    assert (stats.accept_errors, len(made)) == (1000, ROOM)


async def test_other_errors_go_to_the_handler_before() -> None:
    told: list[Any] = []

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    handler = AcceptErrors(RequestStats(), lambda: False)
    handler.install(loop)
    loop.call_exception_handler({"message": "another"})
    loop.call_exception_handler(dict(FULL))
    handler.remove(loop)
    loop.call_exception_handler({"message": "after"})
    assert told == ["another", "after"]


def test_server_makes_room_where_no_more_files_may_be_open() -> None:
    with running() as started, started.connect() as idle:
        idle.sendall(request())
        assert read_answer(idle)

        async def full() -> None:
            asyncio.get_running_loop().call_exception_handler(dict(FULL))

        started.call(full())
        assert idle.recv(1) == b""
        eventually(lambda: started.counts.connections == 0)
        assert (started.counts.accept_errors, started.counts.idle_closed) == (1, 1)

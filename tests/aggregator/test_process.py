"""What follows the configuration, and how its end is told."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE
from specmux_aggregator.config.settings import ListenSettings, Settings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.process import SHARED_MEMORY, find_temporary_directory, handle_signals, run

SETTINGS = Settings(listen=ListenSettings(port=0, shutdown_timeout=1.0))


def test_bug_in_following_the_configuration_is_told_and_serving_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def changes(_: asyncio.Event) -> AsyncIterator[Settings | InvalidConfig]:
        yield SETTINGS
        raise RuntimeError("a bug")

    async def scenario() -> None:
        bound = asyncio.Event()
        serving = asyncio.create_task(run(SETTINGS, changes=changes, started=lambda *_: bound.set()))
        await bound.wait()
        async with asyncio.timeout(DEADLINE):
            while "no longer followed" not in caplog.text:
                await asyncio.sleep(0.01)
        assert not serving.done()
        os.kill(os.getpid(), signal.SIGTERM)
        await serving

    caplog.set_level(logging.INFO)
    asyncio.run(scenario())
    assert caplog.messages[-1] == "stopped"


async def test_hangup_asks_for_a_reading_and_signals_do_not_pile_up() -> None:
    asked = 0

    async def changes(reread: asyncio.Event) -> AsyncIterator[Settings | InvalidConfig]:
        nonlocal asked
        while True:
            await reread.wait()
            reread.clear()
            asked += 1
            yield InvalidConfig("broken")

    bound = asyncio.Event()
    serving = asyncio.create_task(run(SETTINGS, changes=changes, started=lambda *_: bound.set()))
    await bound.wait()
    for _ in range(50):
        os.kill(os.getpid(), signal.SIGHUP)
    async with asyncio.timeout(DEADLINE):
        while not asked:
            await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    await serving
    assert 1 <= asked <= 50


@pytest.mark.parametrize("is_last", [True, False])
async def test_no_signal_ends_the_process_while_handlers_change(
    is_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put back a default for a moment, and a second SIGTERM at that moment ends it by the signal."""
    told = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
    before = {number: signal.signal(number, lambda *_: None) for number in told}
    handlers = {number: [signal.getsignal(number)] for number in told}
    install = signal.signal

    def noted(number: int, handler: Any) -> Any:
        handlers.get(signal.Signals(number), []).append(handler)
        return install(number, handler)

    monkeypatch.setattr(signal, "signal", noted)
    try:
        stop, reread = asyncio.Event(), asyncio.Event()
        with handle_signals(stop, reread, is_last=is_last):
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(DEADLINE):
                await asyncio.gather(stop.wait(), reread.wait())
        for given, _, after in handlers.values():
            assert after is (signal.SIG_IGN if is_last else given)
    finally:
        for number, handler in before.items():
            install(number, handler)


def test_process_may_open_more_files_than_it_was_started_with() -> None:
    program = (
        "import resource; from specmux_aggregator.process import raise_file_limit;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 2000));"
        "raise_file_limit(); print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "(2000, 2000)\n"


@pytest.mark.skipif(not os.access(SHARED_MEMORY, os.W_OK), reason="no shared memory")
@pytest.mark.parametrize(
    ("candidates", "found"), [(["/proc"], SHARED_MEMORY), (["/proc", "{here}"], "{here}")]
)
def test_read_only_root_leaves_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidates: list[str], found: str
) -> None:
    here = [each.format(here=tmp_path) for each in candidates]
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: here)
    find_temporary_directory()
    assert tempfile.gettempdir() == found.format(here=tmp_path)

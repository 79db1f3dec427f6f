"""What every test shares: a loop for those that are coroutine functions, counts for the closing summary.

It stands at the top because with several workers only this file is loaded where the summary is printed.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

import sampling
import shared_data
from specmux_aggregator import mounts
from specmux_aggregator.workers.worker import PRELOADED

TALLY = "tally: "

# Else openapi-spec-validator takes jsonschema-rs where that is installed, which reads patterns as Rust does.
os.environ.setdefault("OPENAPI_SPEC_VALIDATOR_SCHEMA_VALIDATOR_BACKEND", "jsonschema")

# Hundreds of services start a reader in a process that is forked: what it imports is there then.
PRELOADED[:0] = [
    "running.even_precedence",
    *dict.fromkeys(job.partition(":")[0] for job in mounts.READER.values()),
    "jinja2",
]
_ensure_running = forkserver._forkserver.ensure_running


_starting = threading.Lock()


def _ensure_running_with_tests() -> None:
    """Before Python 3.13 a fork server imports what it preloads without the paths of its parent, and passes
    over what is not there.

    Threads ask for it at once, and others read the environment meanwhile: one variable is changed, by one.
    """
    with _starting:
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), before)))
        try:
            _ensure_running()
        finally:
            if before:
                os.environ["PYTHONPATH"] = before
            else:
                del os.environ["PYTHONPATH"]


forkserver._forkserver.ensure_running = _ensure_running_with_tests

# Garbage is looked for at every so many new objects: documents are trees of many, and hold no cycles.
OBJECTS_UNTIL_COLLECTED = 50_000


def pytest_configure(config: pytest.Config) -> None:
    sampling.load_profile(is_whole=sampling.is_whole(config))
    gc.disable()  # while modules are imported and tests collected, which stay


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(OBJECTS_UNTIL_COLLECTED)
    gc.enable()


HANDLERS = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}


def pytest_runtest_teardown() -> None:
    """A service that ran in the process of a test ignores signals at its end, which is the process's too
    elsewhere: processes of later tests would inherit it."""
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine function runs on a loop of its own."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Adds to a count that the closing summary prints: how many were compared, equal, excepted."""

    def add(label: str, count: int) -> None:
        record_property(TALLY + label, count)

    return add


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The tallies, how many tests had no reference data to run on, and whether this was a sample."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for label, count in report.user_properties:
            if label.startswith(TALLY):
                counts[label.removeprefix(TALLY)] += count
    for label, count in sorted(counts.items()):
        terminalreporter.write_line(f"{label}: {count}")
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if shared_data.REASON in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} cases need files of others: {shared_data.REASON}")
    if not sampling.is_whole(config):
        terminalreporter.write_line(
            f"a sample: no long tests, {sampling.share(100)} of each 100 random examples;"
            " make test SELECTION= runs all"
        )

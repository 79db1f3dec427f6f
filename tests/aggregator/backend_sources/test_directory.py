"""What a directory is seen to offer: odd names, files that cannot be read, builds that fail, races."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.apiserver import document
from running.service import directory
from specmux_aggregator.aggregation.check_schedule import after
from specmux_aggregator.backend_sources.directory import READ_ATTEMPTS, DirectoryOrigin
from specmux_aggregator.backend_sources.files import Folder
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.errors import WorkerFailed
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import Limits as DocumentLimits

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"


class FailingWorker(Worker):
    """A real one whose next builds fail, as they do when the process is killed."""

    failures = 0
    builds = 0

    async def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.builds += 1
        if self.failures:
            self.failures -= 1
            raise WorkerFailed("the worker process died")
        return await super().run(function, *args, **kwargs)


@dataclass
class Watch:
    origin: DirectoryOrigin
    worker: FailingWorker
    last: Observation

    async def check(self) -> Outcome:
        outcome = await self.origin.observe(self.last)
        self.last = after(self.last, outcome, now=0.0)
        return outcome


def run(folder: Path, scenario: Callable[[Watch], Awaitable[None]], *, max_files: int = 100) -> None:
    async def main() -> None:
        worker = FailingWorker(timeout=30.0)
        configured = directory("files", folder)
        limits = DocumentLimits()
        held = Folder(folder, max_files=max_files, max_bytes=limits.max_bytes)
        origin = DirectoryOrigin(configured, held, worker, limits=limits, max_group_versions=max_files)
        try:
            await scenario(Watch(origin, worker, Observation(backend=configured)))
        finally:
            await origin.close()
            await worker.close()

    asyncio.run(main())


def write(folder: Path, name: str, body: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


@pytest.mark.parametrize("group", [b"f\xff", b"a b", b"a?b", b"%2e", b"a\n"])
def test_name_that_no_url_can_hold_is_noted_and_costs_no_other_document(tmp_path: Path, group: bytes) -> None:
    write(tmp_path, f"{APPS}.json", document(APPS))
    write(tmp_path, os.fsdecode(b"apis/" + group + b"/v1.json"), document(BATCH))

    async def scenario(at: Watch) -> None:
        await at.check()
        assert set(at.last.offers) == {APPS}
        (note,) = at.last.notes
        assert note.isascii()
        assert note.isprintable()

    run(tmp_path, scenario)


def test_build_that_failed_is_tried_again_a_few_times(tmp_path: Path) -> None:
    write(tmp_path, f"{APPS}.json", document(APPS))

    async def scenario(at: Watch) -> None:
        at.worker.failures = 1
        await at.check()
        assert not at.last.offers
        outcome = await at.check()
        assert isinstance(outcome, BackendOffers)
        assert set(outcome.bodies) == {APPS}
        assert await at.check() == UnchangedOffers()
        write(tmp_path, f"{APPS}.json", document(APPS, "2"))
        at.worker.failures, at.worker.builds = 1000, 0
        for _ in range(READ_ATTEMPTS + 3):
            await at.check()
        assert at.worker.builds == READ_ATTEMPTS
        assert set(at.last.offers) == {APPS}  # what it last held

    run(tmp_path, scenario)


def test_too_many_files_fail_the_check_and_keep_what_was_known(tmp_path: Path) -> None:
    write(tmp_path, f"{APPS}.json", document(APPS))

    async def scenario(at: Watch) -> None:
        await at.check()
        write(tmp_path, f"{BATCH}.json", document(BATCH))
        outcome = await at.check()
        assert isinstance(outcome, Failure)
        assert outcome.cause is Cause.TOO_LARGE
        assert set(at.last.offers) == {APPS}

    run(tmp_path, scenario, max_files=1)


@pytest.mark.parametrize("name", ["", "values.yaml"])
def test_folder_without_documents_is_told_once(tmp_path: Path, name: str) -> None:
    if name:
        (tmp_path / name).write_text("replicas: 1\n")

    async def scenario(at: Watch) -> None:
        await at.check()
        (note,) = at.last.notes
        assert str(tmp_path) in note or name in note
        assert await at.check() == UnchangedOffers()
        write(tmp_path, f"{APPS}.json", document(APPS))
        await at.check()
        assert not [each for each in at.last.notes if str(tmp_path) in each]

    run(tmp_path, scenario)


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, f"{APPS}.json", document(APPS))
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)

    async def scenario(at: Watch) -> None:
        await at.check()
        assert set(at.last.offers) == {APPS}
        assert not at.last.notes

    run(tmp_path, scenario)


def test_files_that_come_and_go_during_a_look_are_no_failure(tmp_path: Path) -> None:
    write(tmp_path, f"{APPS}.json", document(APPS))

    async def scenario(at: Watch) -> None:
        stop = asyncio.Event()

        def churn() -> None:
            while not stop.is_set():
                for number in range(20):
                    write(tmp_path, f"other/{number}.json", b"{")
                for number in range(20):
                    (tmp_path / f"other/{number}.json").unlink()

        churning = asyncio.create_task(asyncio.to_thread(churn))
        try:
            for _ in range(20):
                assert not isinstance(await at.check(), Failure)
                assert APPS in at.last.offers
        finally:
            stop.set()
            await churning

    run(tmp_path, scenario)

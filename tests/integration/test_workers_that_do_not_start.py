"""A service whose worker processes cannot start, until they can."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from deadline import DEADLINE
from running.process import specmux, write_documents

pytestmark = pytest.mark.long

KEY = "apis/garden.example.org/v1"
WORKERS = 4
REFUSED = """
import gc, multiprocessing, os, pathlib

FOLDER = pathlib.Path(os.environ["FOLDER"])

def refuses():
    if multiprocessing.parent_process() is None:
        return
    with (FOLDER / "starts").open("a") as starts:
        starts.write("x")
    if not (FOLDER / "allowed").exists():
        raise PermissionError(1, "Operation not permitted")

gc.freeze = refuses
"""
"""As where a filter of system calls refuses what a worker begins with (``jobs/worker.py``)."""


@pytest.mark.long
def test_starts_that_fail_are_told_once_and_made_seldom(tmp_path: Path) -> None:
    document = {"openapi": "3.0.0", "info": {"title": "garden", "version": "v1"}, "paths": {}}
    folder = write_documents(tmp_path / "documents", {KEY: json.dumps(document).encode()})
    (tmp_path / "sitecustomize.py").write_text(REFUSED)
    config = tmp_path / "config.json"
    backends = [{"name": "garden", "kind": "directory", "directory": str(folder)}]
    polling = {"interval": 0.1}
    config.write_text(json.dumps({"listen": {"port": 0}, "polling": polling, "backends": backends}))
    environment = {"PYTHONPATH": str(tmp_path), "FOLDER": str(tmp_path)}
    with specmux("serve", "--config", str(config), **environment) as process:
        began = time.monotonic()
        process.until_printed("does not start")
        process.until(lambda: len(tmp_path.joinpath("starts").read_text()) > WORKERS, "tried again")
        process.get("/openapi/explain/nothing")
        tried = len(tmp_path.joinpath("starts").read_text())
        assert tried <= WORKERS * (2 + math.log2(1 + time.monotonic() - began))
        for path in ("/readyz", "/openapi/v3", f"/openapi/v3/{KEY}", "/apis/garden.example.org/v1"):
            status, fields, body = process.get(path)
            assert (status, fields["Retry-After"]) == (503, "1"), (path, body)
        assert (
            b"waiting for the first answer of: garden\nthe worker process does not"
            in process.get("/readyz")[2]
        )
        error = json.loads(process.get("/status")[2])["backends"]["garden"]["error"]
        assert error["cause"] == "no_worker"
        (tmp_path / "allowed").touch()
        process.until(lambda: process.get(f"/openapi/v3/{KEY}")[0] == 200, "built")
        process.until_ready()
        started = children_of(process.pid)
        assert process.stop() == 0
        assert "Traceback" not in process.output
        assert 1 <= process.output.count("does not start, so nothing") <= WORKERS
        assert "starts again" in process.output
    assert started
    deadline = time.monotonic() + DEADLINE
    while left := [pid for pid in started if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"outlive the service: {left}"
        time.sleep(0.05)


def children_of(parent: int) -> list[int]:
    """The fork server and Python's resource tracker."""
    tasks = Path(f"/proc/{parent}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]

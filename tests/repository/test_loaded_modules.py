"""Modules and lines of ours that each process loads, as a table, and bounded.

The process that faces the network knows only what it serves.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from running.ports import free_port
from specmux_aggregator import mounts

MOST = {
    "serving": 29_100,
    "import specmux_cache": 200,
    "SchemaCache": 9_000,
}
"""Lines. Of the serving process 400 are of dictionaries (documents.deltas), on by default, and 100 hand
connections to acceptors."""
MOST_RESIDENT = 46
"""MiB of the serving process after its imports; the libraries alone are 38."""

COUNT = """
import sys, json, resource
def count():
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.startswith("specmux_") and file and file.endswith(".py"):
            with open(file, encoding="utf-8") as text:
                found[name] = sum(1 for _ in text)
    return found
"""
SERVING = (
    COUNT
    + """
import os, signal, threading, time, urllib.request
from specmux_aggregator.cli import main
folder, port = sys.argv[1:]
def watch():
    for _ in range(1200):
        time.sleep(0.1)
        try:
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz").status == 200:
                break
        except OSError:
            pass
    print(json.dumps(count()), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=watch, daemon=True).start()
main(["serve", "--directory", folder, "--listen-port", port, "--log-level", "error"], prog_name="specmux")
"""
)
IMPORTED = """
import specmux_aggregator.app, specmux_aggregator.commands.serve, specmux_aggregator.process
print(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
"""


def loaded_by(code: str, *arguments: str) -> dict[str, int]:
    """Lines by module, as the last line that the program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, int] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def imported_by(*statements: str) -> dict[str, int]:
    return loaded_by("\n".join((COUNT, *statements, "print(json.dumps(count()))")))


def run_by(*targets: str) -> dict[str, int]:
    """Loaded by a worker for these functions."""
    modules = {target.partition(":")[0] for target in targets}
    return imported_by("import specmux_aggregator.workers.worker", *(f"import {each}" for each in modules))


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    folder = tmp_path_factory.mktemp("documents")
    document = {"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {}}
    folder.joinpath("apis__a.example.org__v1_openapi.json").write_text(json.dumps(document))
    return {
        "serving": loaded_by(SERVING, str(folder), str(free_port())),
        "reader": run_by(*mounts.READER.values()),
        "validation": run_by(mounts.VALIDATION),
        "builder": run_by("specmux_aggregator.workers.documents:", mounts.DIFFERENCES),
        "catalogue": run_by(mounts.JSON_SCHEMAS, mounts.CHANGES_AS_TEXT),
        "checker": run_by(mounts.DOCUMENT_CHECK),
        "import specmux_cache": imported_by("import specmux_cache"),
        "SchemaCache": imported_by(
            "from specmux_cache import SchemaCache", "SchemaCache('http://127.0.0.1:1').close()"
        ),
    }


def test_each_process_loads_what_it_runs(processes: dict[str, dict[str, int]]) -> None:
    for name, found in processes.items():
        print(f"{name}: {len(found)} modules, {sum(found.values())} lines")
    sizes = {name: sum(processes[name].values()) for name in MOST}
    assert {name: size for name, size in sizes.items() if size > MOST[name]} == {}


def test_process_that_serves_clients_imports_no_tools(processes: dict[str, dict[str, int]]) -> None:
    assert [name for name in processes["serving"] if name.startswith("specmux_tools")] == []


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="no /proc")
def test_service_takes_little_memory_before_it_has_documents() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert int(done.stdout) / 1024 <= MOST_RESIDENT

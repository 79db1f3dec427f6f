"""The commands as processes: start, reload, end, and what they print."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from deadline import DEADLINE
from fakes.apiserver import document
from running.process import Process, specmux, write_documents
from shared_data import DATA
from specmux_converters.media_types import CBOR, PROTOBUF

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"


def test_directory_is_served_with_one_flag_and_sigterm_ends_it(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, {APPS: document(APPS)})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        paths = process.paths()
        assert list(paths) == [APPS]
        assert process.get(paths[APPS])[0] == 200
        assert process.stop() == 0
        assert "stopped" in process.output
        assert "Traceback" not in process.output


def test_killed_service_leaves_no_worker_behind(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, {APPS: document(APPS)})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        process.get(process.paths()[APPS], Accept=CBOR)
        # The end of the context sees to it that the output closes, which every worker holds open.
        process.stop(signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [*children, *(each for child in children for each in descendants(child))]


def states(pids: list[int]) -> dict[int, str]:
    """The states of those that are left, by pid."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return {pid: state for pid, state in found.items() if state != "Z"}


@pytest.mark.parametrize("stopped", [slice(None), slice(1, 2), slice(-1, None)], ids=["all", "2nd", "last"])
def test_stopped_children_hold_no_end_up_and_end_with_the_service(tmp_path: Path, stopped: slice) -> None:
    """The second child is the fork server, the last a worker."""
    folder = write_documents(tmp_path, {APPS: document(APPS)})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        process.get(process.paths()[APPS], Accept=CBOR)
        children = descendants(process.pid)
        assert len(children) > 3
        for child in children[stopped]:
            os.kill(child, signal.SIGSTOP)
        assert process.stop() == 0
        assert not states(children)
        assert "Traceback" not in process.output


def test_killed_children_are_replaced_without_a_traceback(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, {APPS: document(APPS)})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        url = process.paths()[APPS]
        for accepted in ("application/cbor", PROTOBUF, "application/json"):
            for child in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            process.until(lambda accepted=accepted: process.get(url, Accept=accepted)[0] == 200, accepted)
            process.until(lambda: process.get("/openapi/search?q=apps")[0] == 200, "the reader is back")
        assert process.stop() == 0
        assert "Traceback" not in process.output
        assert "resource_tracker" not in process.output


NO_THREADS = """
import threading

def refuses(*arguments, **options):
    raise RuntimeError("can't start new thread")

for name in ("_start_new_thread", "_start_joinable_thread"):
    if hasattr(threading, name):
        setattr(threading, name, refuses)
"""
"""As where the limit of processes is 1."""


def test_system_that_refuses_every_thread_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_THREADS)
    folder = write_documents(tmp_path / "documents", {APPS: document(APPS)})
    for command in ("serve", "ui"):
        arguments = ("--listen-port", "0") if command == "serve" else ("--no-browser",)
        with specmux(command, "--directory", str(folder), *arguments, PYTHONPATH=str(tmp_path)) as process:
            assert process.wait() == 3
            assert len(process.lines) == 1, process.output
            assert "no thread can be started" in process.output
            assert "ulimit -u" in process.output


def test_running_request_is_finished_before_the_end(tmp_path: Path) -> None:
    body = document(APPS, "x" * 3_000_000)
    folder = write_documents(tmp_path, {APPS: body})
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        url = process.paths()[APPS]
        assert len(process.get(url)[2]) > 3_000_000
        connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=DEADLINE)
        connection.request("GET", url)
        response = connection.getresponse()
        start = response.read(1000)
        process.send(signal.SIGTERM)
        assert len(start + response.read()) > 3_000_000
        connection.close()
        assert process.wait() == 0


def test_configuration_is_reloaded_and_a_broken_one_keeps_the_old(tmp_path: Path) -> None:
    one = write_documents(tmp_path / "one", {APPS: document(APPS)})
    two = write_documents(tmp_path / "two", {BATCH: document(BATCH)})
    config = tmp_path / "specmux.yaml"

    def listed(**folders: Path) -> str:
        rows = (
            f"  - {{name: {name}, kind: directory, directory: {path}}}\n" for name, path in folders.items()
        )
        return "backends:\n" + "".join(rows)

    config.write_text(listed(one=one))
    with specmux("serve", "--config", str(config), "--listen-port", "0") as process:
        process.until_ready()
        assert list(process.paths()) == [APPS]
        config.write_text(listed(one=one, two=two))
        process.until(lambda: set(process.paths()) == {APPS, BATCH}, "the second backend is served")
        config.write_text("backends: [{name: one, colour: red}]\n")
        process.until_printed(r"colour")
        assert set(process.paths()) == {APPS, BATCH}
        assert b"specmux_config_last_reload_successful 0.0" in process.get("/metrics")[2]
        assert "colour" in json.loads(process.get("/status")[2])["config"]["error"]
        config.write_text(listed(two=two))
        process.until(lambda: set(process.paths()) == {BATCH}, "the first backend is gone")
        assert json.loads(process.get("/status")[2])["config"]["error"] is None
        assert process.stop() == 0


def test_environment_and_flags_set_what_the_file_does_not(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, {APPS: document(APPS)})
    with specmux(
        "serve", "--directory", str(folder), SPECMUX_LISTEN_PORT="0", SPECMUX_LOG_FORMAT="json"
    ) as process:
        process.until_printed(r'"message": ?"serving on')
        line = next(line for line in process.lines if "serving on" in line)
        assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (("version",), 0, r"^specmux \d"),
        (("--version",), 0, r"\d"),
        (("serve",), 2, "nothing to serve"),
        (("serve", "--no-such-flag"), 2, "No such option"),
        (("serve", "--config", "/nonexistent.yaml"), 3, "nonexistent"),
        (("serve", "--listen-port", "70000", "--directory", "."), 2, "70000"),
    ],
)
def test_commands_end_with_the_code_that_says_why(
    arguments: tuple[str, ...], code: int, printed: str
) -> None:
    with specmux(*arguments) as process:
        assert process.wait() == code
        assert re.search(printed, process.output, re.MULTILINE), process.output
        assert "Traceback" not in process.output


def test_taken_port_is_a_clear_error(tmp_path: Path) -> None:
    with (
        specmux("serve", "--directory", str(tmp_path), "--listen-port", "0") as first,
        specmux("serve", "--directory", str(tmp_path), "--listen-port", str(first.port)) as second,
    ):
        assert second.wait() == 4
        assert "cannot listen" in second.output
        assert "Traceback" not in second.output
        with specmux("demo", "--port", str(first.port)) as third:
            assert third.wait() == 4
            assert "cannot listen" in third.output
            assert "Traceback" not in third.output


def demo_lines(process: Process) -> str:
    process.until_printed(r"Ctrl-C ends it")
    return process.output


def test_demo_serves_the_documents_of_a_release() -> None:
    with specmux("demo", "--port", "0", "--release", "1.37") as process:
        text = demo_lines(process)
        listed = next(line for line in text.splitlines() if line.startswith("  kubernetes "))
        assert listed.endswith(" …")
        url = text.split("serving at ", 1)[1].split()[0]
        with urllib.request.urlopen(f"{url}/openapi/v3/apis/apps/v1", timeout=DEADLINE) as answer:
            assert b"io.k8s.api.apps.v1.Deployment" in answer.read()


def test_demo_prints_lines_that_work() -> None:
    with specmux("demo", "--port", "0") as process:
        text = demo_lines(process)
        lines = [line.strip() for line in text.splitlines()]
        script = [line for line in lines if line.startswith(("curl", "document=", "etag=", "sed "))]
        assert len(script) >= 10
        if shutil.which("curl") is None or shutil.which("xxd") is None:
            pytest.skip("no curl or xxd on this machine")
        steps = "\n".join(f"echo '== {number}'\n{line}" for number, line in enumerate(script))
        result = subprocess.run(
            ["bash", "-c", steps], capture_output=True, text=True, timeout=DEADLINE, check=False
        )
        said = result.stdout
        assert result.returncode == 0, result.stderr
        assert '"serverRelativeURL"' in said
        assert "immutable" in said
        assert "d9d9 f7" in said
        assert "HTTP/1.1 301" in said
        assert "Location: ?hash=" in said
        assert "HTTP/1.1 304" in said
        assert '"speaks": "v2"' in said
        if shutil.which("kubectl") is not None:
            commands = [line.split() for line in lines if line.startswith("kubectl")]
            told = [
                subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True).stdout
                for command in commands
            ]
            assert "As printed on the spine" in told[0]
            assert "Fruit that is picked from it" in told[1]
            kinds = {line.split()[0] for line in told[2].splitlines()[1:]}
            assert kinds >= {"plants", "books", "trees", "stations"}
        assert process.stop(signal.SIGINT) == 0
        assert "Traceback" not in process.output


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
def test_kubectl_reads_the_root_and_the_documents_of_a_real_release() -> None:
    folder = DATA / "k8s-pairs" / "1.35" / "v3"
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as process:
        process.until_ready()
        server = f"--server=http://127.0.0.1:{process.port}"

        def kubectl(path: str) -> bytes:
            command = ["kubectl", server, "get", "--raw", path]
            return subprocess.run(command, capture_output=True, timeout=DEADLINE, check=True).stdout

        root = json.loads(kubectl("/openapi/v3"))["paths"]
        assert len(root) == 36
        for key in ("api/v1", "apis/apps/v1"):
            fetched = json.loads(kubectl(root[key]["serverRelativeURL"]))
            assert fetched["openapi"].startswith("3.")
            stale = json.loads(kubectl(f"/openapi/v3/{key}?hash=STALE"))
            assert stale == fetched

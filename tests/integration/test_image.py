"""The Dockerfile's promises, and the image's files with the service running in them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from deadline import DEADLINE
from fakes.openapi_server import Reference, document
from fakes.openapi_thread import serving_in_thread
from running.image import ENVIRONMENT, REPOSITORY, ImageRoot, Instruction, environment, gathered, instructions
from running.process import Process, specmux, write_documents

pytestmark = pytest.mark.long

CBOR = "application/cbor"
SHELLS = re.compile(r"(ba|da|a|z|k|c|tc|fi)?sh|busybox|toybox")
MODERN = b'{"openapi":"3.0.0","info":{"title":"t","version":"v1"},"paths":{}}'
LEGACY = (
    b'{"swagger":"2.0","info":{"title":"t","version":"v1"},"paths":{"/apis/old.example/v1/":{"get":'
    b'{"operationId":"a","responses":{"200":{"description":"ok"}}}}}}'
)
CONFIG = """\
listen: {address: 127.0.0.1, port: 0, shutdown_timeout: 600}
backends:
  - {name: files, kind: directory, directory: documents}
"""


@pytest.fixture
def image(tmp_path_factory: pytest.TempPathFactory) -> ImageRoot:
    return gathered(tmp_path_factory)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """As a ConfigMap is mounted: readable by everybody."""
    folder = tmp_path / "config"
    write_documents(folder / "documents", {"apis/new.example/v1": MODERN, "swagger": LEGACY})
    (folder / "specmux.yaml").write_text(CONFIG)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def last_stage(name: str) -> list[Instruction]:
    last = max(item.stage for item in instructions())
    return [item for item in instructions() if item.stage == last and item.name == name]


def serve_command() -> tuple[str, ...]:
    (entry,), (command,) = last_stage("ENTRYPOINT"), last_stage("CMD")
    return (*json.loads(entry.text), *json.loads(command.text))


def run(image: ImageRoot, config: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*image.inside(config=config), *command],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def test_last_stage_starts_from_nothing_and_runs_nothing() -> None:
    assert [item.text for item in last_stage("FROM")] == ["scratch"]
    assert last_stage("RUN") == []
    assert [item.text for item in last_stage("USER")] == ["65532:65532"]
    assert [item.text for item in last_stage("HEALTHCHECK")] == ["NONE"]
    assert serve_command() == ("specmux", "serve", "--config", "/etc/specmux/specmux.yaml")
    assert environment()["PATH"] == f"{ENVIRONMENT}/bin"


def test_every_copy_names_a_stage_or_what_the_repository_has() -> None:
    stages: set[str] = set()
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    for item in instructions():
        if item.name == "FROM":
            words = item.text.split()
            assert words[0] == "scratch" or words[0] == "${PYTHON}"
            stages |= {words[2]} if words[1:2] == ["AS"] else set()
        if item.name != "COPY":
            continue
        source = re.match(r"--from=(\w+) ", item.text)
        if source:
            assert source[1] in stages
            continue
        for name in item.text.split()[:-1]:
            assert (REPOSITORY / name).exists()
            assert f"!{name.split('/')[0]}" in ignored
    assert "*" in ignored


def test_wheel_that_the_dockerfile_builds_has_all_it_needs() -> None:
    """What hatchling reads is what the first stage copies."""
    copied = {
        name
        for item in instructions()
        if item.name == "COPY" and "--from" not in item.text
        for name in item.text.split()[:-1]
    }
    pyproject = (REPOSITORY / "pyproject.toml").read_text()
    packages = re.search(r"targets\.wheel\]\npackages = \[([^\]]*)\]", pyproject)
    assert packages
    assert {path.split("/")[0] for path in re.findall(r'"([^"]+)"', packages[1])} <= copied
    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE"} <= copied


@pytest.mark.long
def test_image_has_no_shell_and_nothing_that_raises_privileges(image: ImageRoot) -> None:
    files = [path for path in image.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if SHELLS.fullmatch(path.name)] == []
    assert [path for path in files if path.stat().st_mode & 0o6000] == []
    assert [path for path in image.path.rglob("pip") if path.is_dir()] == []
    programs = {path.name for path in files if path.parent.name in ("bin", "sbin")}
    assert all(re.fullmatch(r"specmux|python[0-9.]*", name) for name in programs), programs


@pytest.mark.long
def test_image_has_the_time_zones_that_rules_name(image: ImageRoot) -> None:
    zones = Path("/usr/share/zoneinfo")
    if zones.is_dir():
        assert (image.path / "usr/share/zoneinfo/America/New_York").read_bytes().startswith(b"TZif")


@pytest.mark.long
def test_scanners_find_the_packages_of_the_libraries(image: ImageRoot) -> None:
    folder = image.path / "var/lib/dpkg/status.d"
    if not folder.exists():
        pytest.skip("the libraries of this system are not Debian's")
    said = {path.name: path.read_text() for path in folder.iterdir()}
    assert "libc6" in said
    for name, text in said.items():
        assert text.startswith(f"Package: {name}\n")
        assert re.search(r"^Version: \S+", text, re.MULTILINE)


@pytest.mark.long
def test_process_in_the_image_is_nobody_and_can_write_nowhere(image: ImageRoot, config: Path) -> None:
    script = (
        "import errno, os, ssl\n"
        "print(os.getuid(), os.getgid(), os.getgroups())\n"
        "for path in ('/x', '/tmp/x', '/etc/specmux/x', '/var/cache/specmux/x', '/dev/x'):\n"
        "    try: open(path, 'w')\n"
        "    except OSError as error: print(errno.errorcode[error.errno])\n"
        "print(ssl.create_default_context().cert_store_stats()['x509_ca'] > 50)\n"
        "print(open('/proc/self/status').read())\n"
    )
    done = run(image, config, "python", "-c", script)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "65532 65532 [65532]"
    assert set(lines[1:6]) <= {"EROFS", "EACCES"}
    assert lines[6] == "True"
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == 0


@pytest.mark.long
def test_every_module_of_the_service_imports_in_the_image(image: ImageRoot, config: Path) -> None:
    script = (
        "import importlib, pkgutil\n"
        "for top in ('specmux_aggregator', 'specmux_cache', 'specmux_converters', 'specmux_tools'):\n"
        "    package = importlib.import_module(top)\n"
        "    for found in pkgutil.walk_packages(package.__path__, top + '.'):\n"
        "        if found.name.startswith('specmux_tools.mcp'):\n"
        "            continue  # the extra mcp\n"
        "        importlib.import_module(found.name)\n"
        "        print(found.name)\n"
        "import encodings.idna, sqlite3, zoneinfo, curses\n"
    )
    done = run(image, config, "python", "-c", script)
    assert "specmux_aggregator.app\n" in done.stdout
    # The last one is left out on purpose: that the script gets there shows that a missing module is noticed.
    assert re.search(r"No module named '_?curses'", done.stderr), done.stderr


@pytest.mark.long
def test_image_serves_from_its_state_when_the_backend_is_gone(
    image: ImageRoot, config: Path, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    # As the kubelet hands a volume to a pod with fsGroup: root's, and so never a store's own directory.
    os.chown(volume, 0, 65532)
    volume.chmod(0o2775)
    under = image.inside(config=config, volume=volume)
    with serving_in_thread(Reference({"apis/far.example/v1": document("far")})) as backend:
        arguments = (
            *("--state-directory", "/var/cache/specmux/state"),
            *("--backend", f"far={backend.url}"),
        )
        with specmux(*arguments, program=serve_command(), under=under) as process:
            expect_documents(process, 3)
            expect_quick_end(process)
    assert {path.stat().st_uid for path in volume.rglob("*")} == {65532}, process.output
    with specmux(*arguments, program=serve_command(), under=under) as process:
        expect_documents(process, 3)
        expect_quick_end(process)


@pytest.mark.long
def test_image_needs_no_place_to_write_to(image: ImageRoot, config: Path) -> None:
    """No state, no volume at /tmp: the workers' sockets and semaphores lie in /dev/shm."""
    with specmux(program=serve_command(), under=image.inside(config=config)) as process:
        expect_documents(process, 2)
        expect_quick_end(process)
    assert "Traceback" not in process.output


@pytest.mark.long
def test_service_that_cannot_start_its_worker_says_so_and_lives(image: ImageRoot, config: Path) -> None:
    with specmux(program=serve_command(), under=image.inside(config=config, shm=False)) as process:
        process.until_printed("the worker process does not start, so nothing is converted or encoded: .+")
        process.until_printed("backend files: no_worker: .+")
        assert process.get("/openapi/v3")[0] == process.get("/readyz")[0] == 503
        error = json.loads(process.get("/status")[2])["backends"]["files"]["error"]
        assert "the worker process does not start" in error["detail"]
        expect_quick_end(process)
    assert "Traceback" not in process.output


def expect_documents(process: Process, count: int) -> None:
    process.until_ready()
    process.until(lambda: len(process.paths()) == count, "all documents are there")
    for url in process.paths().values():
        assert process.get(url)[0] == 200
        status, headers, _ = process.get(url, Accept=CBOR)
        assert (status, headers["Content-Type"]) == (200, CBOR)


def expect_quick_end(process: Process) -> None:
    """Long before the ``shutdown_timeout`` of CONFIG."""
    assert process.stop(signal.SIGTERM) == 0, process.output

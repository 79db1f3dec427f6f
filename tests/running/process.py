"""``specmux`` as users run it: a process of its own, asked over HTTP, ended by a signal."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deadline import DEADLINE


class Process:
    """One running ``specmux``. Its output is read all the time, so that it never blocks on us."""

    def __init__(
        self,
        *arguments: str,
        program: tuple[str, ...] = (sys.executable, "-m", "specmux_aggregator.cli"),
        under: tuple[str, ...] = (),
        close_fds: bool = True,
        **environment: str,
    ) -> None:
        """``program``: how to call ``specmux``. ``under``: a command that replaces itself with the one it is
        given. ``close_fds``: False passes on what is inheritable."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPECMUX_")}
        self._process = subprocess.Popen(
            [*under, *program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            close_fds=close_fds,
            env={**clean, **environment, "PYTHONUNBUFFERED": "1"},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(iter(self._process.stdout.readline, ""))

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def until_printed(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.output):
                return match
            if self._process.poll() is not None:
                self._reader.join(DEADLINE)
                if match := re.search(pattern, self.output):
                    return match
                break
            time.sleep(0.02)
        raise AssertionError(f"never printed {pattern}:\n{self.output}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def port(self) -> int:
        return int(self.until_printed(r"serving on \S+:(\d+)/")[1])

    def get(self, target: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def paths(self) -> dict[str, str]:
        body = json.loads(self.get("/openapi/v3")[2])
        return {key: item["serverRelativeURL"] for key, item in body["paths"].items()}

    def until(self, is_so: Any, what: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if is_so():
                return
            time.sleep(0.05)
        raise AssertionError(f"never came true: {what}\n{self.output}")

    def until_ready(self) -> None:
        self.until(lambda: self.get("/readyz")[0] == 200, "ready")

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the process has ended by itself."""
        code = self._process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        return code

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self._process.poll() is None:
            self.send(number)
        return self.wait()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        assert self._process.stdout is not None
        assert not self._reader.is_alive(), "a worker outlives the service and holds its output open"
        self._process.stdout.close()


@contextmanager
def specmux(*arguments: str, under: tuple[str, ...] = (), **environment: str) -> Iterator[Process]:
    process = Process(*arguments, under=under, **environment)
    try:
        yield process
    finally:
        process.kill()


def write_documents(folder: Path, documents: dict[str, bytes]) -> Path:
    for key, body in documents.items():
        path = folder / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return folder

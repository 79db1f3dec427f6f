"""What the stress of the service runs against: real backends that misbehave, and the service as a process."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import orjson

import shared_data
from fakes.faulty_backend import FAULTS, Exchange, Fault, FaultyBackend, document

DEADLINE = 60.0
"""Seconds for anything the service is waited for."""

LEGACY, FILE = "apis/legacy.example.com/v1", "apis/files.example.com/v1"

CONFIG = """\
listen: {port: 0, header_timeout: 2, write_timeout: 3, shutdown_timeout: 3}
polling: {interval: 0.3, connect_timeout: 1, idle_timeout: 1, total_timeout: 3, backoff_min: 0.1,
          backoff_max: 0.5, revalidate_interval: 0.5, v3_probe_interval: 1}
limits: {max_document_bytes: 8MiB, max_root_bytes: 1MiB, max_group_versions: 1000, build_timeout: 10}
memory: {documents_bytes: 32MiB}
backends:
"""


def documents() -> dict[str, bytes]:
    """Those of a Kubernetes release and of operators, or our own where the reference data is not at hand."""
    paths = shared_data.documents("1.35")
    for path in sorted((shared_data.GOLDEN / "crd-openapi-v3").glob("*/apis/*/*.json.gz")):
        paths.setdefault(f"apis/{path.parent.name}/{path.name.removesuffix('.json.gz')}", path)
    real = {key: shared_data.read(path) for key, path in paths.items()}
    return real or {f"apis/g{number}.example.com/v1": own(number) for number in range(36)}


def own(number: int) -> bytes:
    """Text that no coding makes much shorter: the small disk has to get full."""
    text = random.Random(number).randbytes(number * number * 250).hex()
    return document(f"apis/g{number}.example.com/v1", text)


def swagger(title: str) -> bytes:
    operation = {"get": {"produces": ["application/json"], "responses": {"200": {"description": "OK"}}}}
    paths = {f"/{LEGACY}/things{number}": operation for number in range(50)}
    return orjson.dumps({"swagger": "2.0", "info": {"title": title, "version": "1"}, "paths": paths})


class World:
    """Five backends: one that is always well, three that change or fail, and a directory that is edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "specmux.yaml"
        self.directory = folder / "documents"
        keys = sorted(documents().items())
        self.steady = FaultyBackend(dict(keys[0::3]))
        self.changing = FaultyBackend(dict(keys[1::3]))
        self.bad = FaultyBackend(dict(keys[2::3]))
        self.legacy = FaultyBackend(swagger=swagger("0"))
        self.faults = 0
        self.reloads = 0
        self.changes = 0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for server in (self.steady, self.changing, self.bad, self.legacy):
            await self._stack.enter_async_context(server)
        self.edit_directory()
        self.configure()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def configure(self, *, priority: int = 0, extra: str = "") -> None:
        """Write the file. ``priority`` is of backends that change or fail, ``extra`` more of its lines."""
        listed = [
            f"  - {{name: steady, url: '{self.steady.url}'}}",
            f"  - {{name: changing, url: '{self.changing.url}', priority: {priority}}}",
            f"  - {{name: bad, url: '{self.bad.url}', priority: {priority}}}",
            f"  - {{name: legacy, url: '{self.legacy.url}', kind: v2, priority: {priority}}}",
            f"  - {{name: files, kind: directory, directory: '{self.directory}'}}",
        ]
        self.config.write_text(CONFIG + "\n".join(listed) + "\n" + extra)

    def edit_directory(self) -> None:
        path = self.directory / f"{FILE}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document(FILE, str(self.changes)))
        torn = self.directory / "apis/torn.example.com/v1.json"
        torn.parent.mkdir(parents=True, exist_ok=True)
        torn.write_bytes(document(FILE)[: self.changes % 40])

    async def change(self, pause: float) -> None:
        """Change documents, for ever."""
        for key in sorted(self.changing.documents) * 1000:
            self.changes += 1
            tree = orjson.loads(self.changing.documents[key])
            tree["info"]["version"] = str(self.changes)
            self.changing.documents[key] = orjson.dumps(tree)
            self.edit_directory()
            if self.changes % 5 == 0:
                self.legacy.swagger = swagger(str(self.changes))
            await asyncio.sleep(pause)

    async def misbehave(self, pause: float) -> None:
        """One fault after the other, of all answers or of the documents alone, for ever."""
        names = sorted(FAULTS)
        for number in range(100_000):
            fault, _ = FAULTS[names[number % len(names)]]
            self.bad.fault = fault if number // len(names) % 2 == 0 else _of_documents(self.bad, fault)
            self.legacy.fault = fault if number % 3 == 0 else None
            self.faults += 1 + (number % 3 == 0)
            await asyncio.sleep(pause)
            self.bad.fault = None
            if number % 4 == 0:
                await self.bad.refuse()
                await asyncio.sleep(pause)
                await self.bad.listen()
                self.faults += 1

    async def reload(self, service: Service, pause: float) -> None:
        """Another priority, another backend, a broken file: one after the other, for ever."""
        down = "  - {name: down-%d, url: 'http://127.0.0.1:9'}\n"
        for number in range(100_000):
            match number % 3:
                case 0:
                    self.configure(priority=number % 7 - 3)
                case 1:
                    self.configure(extra=down % number)
                case 2:
                    self.configure(extra="  - {name: broken, colour: red}\n")
            service.send(signal.SIGHUP)
            self.reloads += 1
            await asyncio.sleep(pause)


def _of_documents(backend: FaultyBackend, fault: Fault) -> Fault:
    async def only_documents(exchange: Exchange) -> None:
        await (backend.behave if exchange.target == "/openapi/v3" else fault)(exchange)

    return only_documents


class LoggedProcess:
    """``specmux serve`` as a process that writes into one log, over all its lives."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.process: asyncio.subprocess.Process | None = None
        self.port = 0

    async def start_serving(
        self, *arguments: str, within: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        """Return once it listens. ``within``: a command that runs it. ``environment``: added to our own."""
        already = self.log.count("serving on")
        command = [*within, sys.executable, "-m", "specmux_aggregator.cli", "serve", *arguments]
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
            )
        async with asyncio.timeout(DEADLINE):
            while self.log.count("serving on") == already:
                if self.process.returncode is not None:
                    raise AssertionError(f"it ended with {self.process.returncode}:\n{self.log[-3000:]}")
                await asyncio.sleep(0.02)
        self.port = int(re.findall(r"serving on \S+:(\d+)/", self.log)[-1])

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def send(self, number: int) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)

    async def end(self, number: int = signal.SIGTERM) -> int:
        """The exit code."""
        assert self.process is not None
        self.send(number)
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()


class Service(LoggedProcess):
    """``specmux serve`` as a process. ``full_disk``: its state directory is a tmpfs of 2 MiB."""

    def __init__(self, world: World, *, full_disk: bool = False) -> None:
        super().__init__(world.folder / "log")
        self._state = world.folder / ("full" if full_disk else "state")
        self._state.mkdir(exist_ok=True)
        self._config = world.config
        self._mount = [
            "unshare",
            "-rm",
            "sh",
            "-c",
            f'mount -t tmpfs -o size=2m none "{self._state}" && exec "$@"',
            "sh",
        ]
        self._is_mounted = full_disk and can_mount()

    @property
    def has_full_disk(self) -> bool:
        return self._is_mounted

    async def start(self) -> None:
        """Return once it listens."""
        await self.start_serving(
            *("--config", str(self._config), "--state-directory", str(self._state)),
            within=self._mount if self._is_mounted else (),
        )

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss(self) -> int:
        """Bytes."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", text)[1])  # type: ignore[index]

    @property
    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode == 0

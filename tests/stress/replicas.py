"""Three replicas of the service, the proxies in front of them, and clients that count what they see."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson
from yarl import URL

from running.ports import free_port
from specmux_converters.media_types import JSON
from stress.service_load import promised_hash
from stress.service_world import DEADLINE, LoggedProcess

PROXIES = Path(__file__).resolve().parents[2] / "docs/proxies"
"""The configurations that users are told to take: they are what runs here."""

TIMEOUT = aiohttp.ClientTimeout(total=20)
HOPS = 5

CONFIG = """\
listen: {{port: {port}, shutdown_timeout: 5}}
polling: {{interval: 1, connect_timeout: 1, idle_timeout: 2, total_timeout: 5}}
backends: [{{name: cluster, url: "{url}"}}]
"""


def nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def varnish() -> str | None:
    return shutil.which("varnishd") or shutil.which("varnishd", path="/usr/sbin")


class Replica:
    """``specmux serve`` on one port, for as many lives as a test wants."""

    def __init__(self, folder: Path, number: int, url: str = "", *, config: str | None = None) -> None:
        """In front of the server at ``url``, or of what ``config`` says."""
        self.port = free_port()
        self._config = folder / f"replica-{number}.yaml"
        listen = f"listen: {{port: {self.port}, shutdown_timeout: 5}}\n"
        text = CONFIG.format(port=self.port, url=url) if config is None else listen + config
        self._config.write_text(text)
        self._process = LoggedProcess(folder / f"replica-{number}.log")

    @property
    def log(self) -> str:
        return self._process.log

    async def start(self) -> None:
        """Return once it is ready."""
        await self._process.start_serving("--config", str(self._config))
        await until(lambda: is_ready(self.port), "a replica is ready")

    async def end(self) -> int:
        return await self._process.end(signal.SIGTERM)

    async def kill(self) -> None:
        await self._process.end(signal.SIGKILL)

    async def hits(self) -> int:
        """How many requests for documents it has answered so far."""
        text = (await fetch(self.port, "/metrics")).decode()
        lines = re.findall(r"^specmux_request_duration_seconds_count\{(.*)\} (\S+)$", text, re.MULTILINE)
        return sum(int(float(count)) for labels, count in lines if 'route="openapi_document"' in labels)


@asynccontextmanager
async def nginx_in_front(
    folder: Path, replicas: list[Replica], *, edit: Callable[[str], str] = str
) -> AsyncIterator[int]:
    """nginx with the documented configuration, as edited; its port."""
    port, run = free_port(), folder / "nginx"
    run.mkdir()
    text = edit((PROXIES / "nginx.conf").read_text())
    for number, replica in enumerate(replicas, start=1):
        text = text.replace(f"127.0.0.1:808{number}", f"127.0.0.1:{replica.port}")
    text = text.replace("127.0.0.1:8090", f"127.0.0.1:{port}")
    text = text.replace("/var/cache/nginx/specmux", f"{run}/cache").replace("/run/nginx-", f"{run}/")
    folders = "".join(
        f"{name}_temp_path {run}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {", "http { " + folders, 1)
    config = run / "nginx.conf"
    config.write_text(text)
    command = [nginx() or "nginx", "-c", str(config), "-g", "daemon off;"]
    if os.getuid() == 0:
        command[-1] += " user root;"
    async with _running(command, port, run / "log"):
        yield port


@asynccontextmanager
async def varnish_in_front(
    folder: Path, replica: Replica, *, edit: Callable[[str], str] = str
) -> AsyncIterator[int]:
    """Varnish with the documented configuration, as edited, in front of one replica; its port."""
    port, run = free_port(), folder / "varnish"
    run.mkdir()
    text = edit((PROXIES / "varnish.vcl").read_text()).replace('"8090"', f'"{replica.port}"')
    config = run / "varnish.vcl"
    config.write_text(text)
    command = [varnish() or "varnishd", "-F", "-f", str(config), "-a", f"127.0.0.1:{port}", "-n", str(run)]
    command += ["-s", "malloc,64m", "-p", "http_gzip_support=off", "-j", "none"]
    async with _running(command, port, run / "log"):
        yield port


@asynccontextmanager
async def _running(command: list[str], port: int, log: Path) -> AsyncIterator[None]:
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(*command, stdout=file, stderr=file)
    try:
        await until(lambda: accepts(port), f"{command[0]} listens: {log.read_text()[-2000:]}")
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(DEADLINE):
            await process.wait()


async def fetch(port: int, target: str) -> bytes:
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.get(URL(f"http://127.0.0.1:{port}{target}", encoded=True)) as answer,
    ):
        return await answer.read()


async def accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def is_ready(port: int) -> bool:
    try:
        return await fetch(port, "/readyz") == b"ok\n"
    except aiohttp.ClientError:
        return False


async def until(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    """Return when it is so. Raises AssertionError after a deadline."""
    try:
        async with asyncio.timeout(DEADLINE):
            while not await is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"never came true: {what}") from None


@dataclass(slots=True)
class Seen:
    """What clients counted. Every entry of ``wrong`` is a promise that was broken."""

    documents: int = 0
    redirects: int = 0
    longest: int = 0
    """Redirects in a row."""
    unavailable: int = 0
    """503 with Retry-After, where that is allowed: a document whose servers are all away."""
    wrong: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        if len(self.wrong) < 50:
            self.wrong.append(what)


class Clients:
    """Clients that read the root and some of its documents, over keep-alive connections."""

    def __init__(self, port: int, *, seed: int = 7, takes_unavailable: bool = False) -> None:
        self._takes_unavailable = takes_unavailable
        self._base = f"http://127.0.0.1:{port}"
        self._choice = random.Random(seed)
        self.seen = Seen()

    async def read(self, count: int) -> None:
        """That many clients, for ever."""
        connector = aiohttp.TCPConnector(limit=count)
        async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as session:
            await asyncio.gather(*(self._one(session) for _ in range(count)))

    async def _one(self, session: aiohttp.ClientSession) -> None:
        while True:
            status, _, body = await self.get(session, "/openapi/v3")
            if status != 200:
                self.seen.note(f"the root answered {status}")
                continue
            paths = orjson.loads(body)["paths"]
            for key in self._choice.sample(sorted(paths), min(10, len(paths))):
                await self.document(session, key, paths[key]["serverRelativeURL"])

    async def document(self, session: aiohttp.ClientSession, key: str, url: str) -> bytes:
        """The document, with every redirect followed and counted, and its body checked against its URL."""
        hops = 0
        status, headers, body = await self.get(session, url)
        while status == 301 and hops < HOPS:
            hops += 1
            url = f"/openapi/v3/{key}{headers['Location']}"
            status, headers, body = await self.get(session, url)
        self.seen.documents += 1
        self.seen.redirects += hops
        self.seen.longest = max(self.seen.longest, hops)
        if status == 503 and self._takes_unavailable and "Retry-After" in headers:
            self.seen.unavailable += 1
        elif status != 200:
            self.seen.note(f"{key} answered {status}: {body[:200]!r}")
        elif hashlib.sha512(body).hexdigest().upper() != promised_hash(url, headers):
            self.seen.note(f"{key}: the body is not what its URL says")
        return body

    async def get(self, session: aiohttp.ClientSession, target: str) -> tuple[int, dict[str, str], bytes]:
        url = URL(self._base + target, encoded=True)
        try:
            async with session.get(url, headers={"Accept": JSON}, allow_redirects=False) as answer:
                return answer.status, dict(answer.headers), await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.seen.note(f"{target[:60]}: {type(error).__name__}: {error}")
            return 0, {}, b""

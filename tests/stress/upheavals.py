"""What operators and machines do to a running service: certificates and files exchanged, a clock set."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import orjson
import trustme

from fakes.faulty_backend import FaultyBackend, document
from stress.service_world import LoggedProcess

KEYS = tuple(f"apis/g{number}.example.com/v1" for number in range(6))
READERS = 8
STEP = 15.0
"""Seconds within which a changed file has to be noticed."""

YEAR = 365 * 86400
LIBFAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
)
"""Where Debian's package faketime has it."""

CONFIG = """\
listen: {{port: 0{tls}}}
polling: {{interval: 0.3, connect_timeout: 1, idle_timeout: 1, total_timeout: 3}}
backends: [{{name: cluster, url: "{url}", priority: {priority}}}]
"""


class Upheaval:
    """A service in front of one backend that is well, and readers that may not notice anything."""

    def __init__(self, folder: Path, backend: FaultyBackend) -> None:
        self.folder = folder
        self.backend = backend
        self.process = LoggedProcess(folder / "log")
        self.answers: Counter[int] = Counter()
        self.wrong: list[str] = []

    def configure(self, *, tls: str = "", priority: int = 0, broken: bool = False) -> Path:
        path = self.folder / "specmux.yaml"
        text = CONFIG.format(url=self.backend.url, tls=tls, priority=priority)
        path.write_text(text + "colour: red\n" if broken else text)
        return path

    async def read(self, trust: ssl.SSLContext | None) -> None:
        """Keep-alive clients and clients with a connection for each request, for ever."""
        await asyncio.gather(*(self._one(trust, is_fresh=number % 2 == 0) for number in range(READERS)))

    async def _one(self, trust: ssl.SSLContext | None, *, is_fresh: bool) -> None:
        base = f"{'https' if trust else 'http'}://127.0.0.1:{self.process.port}"
        connector = aiohttp.TCPConnector(ssl=trust or True, force_close=is_fresh)
        async with aiohttp.ClientSession(
            base, connector=connector, timeout=aiohttp.ClientTimeout(total=10)
        ) as session:
            while True:
                for key in KEYS:
                    await self._read_one(session, f"/openapi/v3/{key}")
                await asyncio.sleep(0.02)

    async def _read_one(self, session: aiohttp.ClientSession, target: str) -> None:
        try:
            async with session.get(target) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.wrong.append(f"{target}: {type(error).__name__}: {error}")
            return
        self.answers[answer.status] += 1
        if answer.status != 200 or body != self.backend.documents[target.removeprefix("/openapi/v3/")]:
            self.wrong.append(f"{target}: {answer.status}, {body[-200:]!r}")

    async def until_logged(self, line: str, times: int) -> None:
        try:
            async with asyncio.timeout(STEP):
                while self.process.log.count(line) < times:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            self.wrong.append(f"not within {STEP} s: {line!r}, {times} times")


async def rotate(folder: Path, count: int) -> tuple[str, list[str]]:
    """Exchange certificate and configuration ``count`` times under load; answers, and what was wrong."""
    authority = trustme.CA()
    pairs = [authority.issue_cert("127.0.0.1") for _ in range(min(count + 1, 10))]
    cert_file, key_file = folder / "tls.crt", folder / "tls.key"

    def write(number: int) -> None:
        pair = pairs[number % len(pairs)]
        whole = pair.cert_chain_pems[0].bytes()
        if number % 3 == 1:
            cert_file.write_bytes(whole[: len(whole) // 2])  # as a copy in progress leaves it
        pair.private_key_pem.write_to_path(key_file)
        cert_file.write_bytes(whole)

    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    write(0)
    tls = f", tls_cert_file: {cert_file}, tls_key_file: {key_file}"
    async with FaultyBackend({key: document(key) for key in KEYS}) as backend:
        upheaval = Upheaval(folder, backend)
        await upheaval.process.start_serving("--config", str(upheaval.configure(tls=tls)))

        async def exchange() -> None:
            await asyncio.sleep(1)
            for number in range(1, count + 1):
                write(number)
                upheaval.configure(tls=tls, priority=number, broken=True)
                await upheaval.until_logged("the changed configuration is refused", number)
                upheaval.configure(tls=tls, priority=number)
                await upheaval.until_logged("configuration reloaded", number)
                await upheaval.until_logged("the certificate was reloaded", number)

        await _under_load(upheaval, exchange, trust)
    answers = ", ".join(f"{number:,} × {code}" for code, number in sorted(upheaval.answers.items()))
    return answers, upheaval.wrong


def libfaketime() -> str | None:
    """Where it lies; None where it is not installed."""
    return next((path for path in LIBFAKETIME if Path(path).exists()), None)


async def set_clock(folder: Path, library: str) -> tuple[str, list[str]]:
    """Move the service's wall clock a year ahead, a year back, and home; answers, and what was wrong."""
    clock = folder / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Its workaround for old C libraries makes waits on locks last for seconds in this one.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }
    async with FaultyBackend({key: document(key) for key in KEYS}) as backend:
        upheaval = Upheaval(folder, backend)
        arguments = ("--config", str(upheaval.configure()), "--state-directory", str(folder / "state"))
        await upheaval.process.start_serving(*arguments, environment=environment)

        async def jump() -> None:
            for number, offset in enumerate((0, YEAR, -YEAR, 0)):
                clock.write_text(f"{offset:+d}")
                backend.documents[KEYS[0]] = document(KEYS[0], str(number))
                await asyncio.sleep(2)
                upheaval.wrong += await _ages(upheaval.process.port, offset)

        await _under_load(upheaval, jump, None)
    # A document that has just been changed is one poll old at most; that one may be read meanwhile.
    wrong = [item for item in upheaval.wrong if not item.startswith(f"/openapi/v3/{KEYS[0]}: 200")]
    answers = ", ".join(f"{number:,} × {code}" for code, number in sorted(upheaval.answers.items()))
    return answers, wrong


async def _ages(port: int, offset: int) -> list[str]:
    """What is wrong with the ages told, and whether the clock is where it was put."""
    base, timeout = f"http://127.0.0.1:{port}", aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(base, timeout=timeout) as session:
        async with session.get("/status") as answer:
            backend = orjson.loads(await answer.read())["backends"]["cluster"]
        async with session.get("/metrics") as answer:
            told = re.findall(r"^(\S*age_seconds\S*) (\S+)$", await answer.text(), re.MULTILINE)
    wrong = [f"{name} is {value} at {offset:+d} s" for name, value in told if float(value) < 0]
    age = backend["lastSuccessAgeSeconds"]
    if backend["state"] != "up" or age is None or not 0 <= age < 60:
        wrong.append(f"at {offset:+d} s the backend is {backend['state']}, seen {age} s ago")
    return wrong


async def _under_load(
    upheaval: Upheaval, work: Callable[[], Awaitable[None]], trust: ssl.SSLContext | None
) -> None:
    await upheaval.until_logged("backend cluster: up", 1)
    await asyncio.sleep(0.2)
    load = asyncio.create_task(upheaval.read(trust))
    try:
        await work()
    finally:
        load.cancel()
        results = await asyncio.gather(load, return_exceptions=True)
        code = await upheaval.process.end()
    upheaval.wrong += [repr(item) for item in results if isinstance(item, Exception)]
    if code != 0 or "Traceback" in upheaval.process.log:
        upheaval.wrong.append(f"it ended with {code}:\n{upheaval.process.log[-2000:]}")

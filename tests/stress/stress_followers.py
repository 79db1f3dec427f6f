"""Followers of publications while CustomResourceDefinitions change: nothing lost, nothing doubled.

    python tests/stress/stress_followers.py [--seconds 600] [--followers 256] [--write PAGE]

Loopback only; ends by itself. Part of the followers leave now and then and resume after the last id that
they saw; part of them come through nginx as docs/proxies has it, where it is installed. Prints a table in
Markdown; exits 1 when a promise was broken:

* every follower is told the same publications in the same order, from where it began to the last one;
* no id comes twice to a follower, whatever connections broke;
* the memory of the service at the end is what it was when a third of the time had passed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp
import yaml

from data.compared import definition
from stress.findings_table import FindingsTable
from stress.replicas import Replica, fetch, nginx, nginx_in_front, until

CHANGE_PAUSE = 0.5
"""Seconds between changes of a definition; the directory is looked at every second."""
LEAVING = 0.25
"""Of the followers, those that leave now and then."""
STAY = (2.0, 6.0)
THROUGH_NGINX = 16
GROWTH_MAX = 32.0
"""MiB."""

CONFIG = """\
listen: {{port: {port}, shutdown_timeout: 5}}
changes: {{settle: 1}}
backends: [{{name: crds, kind: crds, directory: "{folder}"}}]
"""


class Following:
    """One follower: every event that it was told, in order."""

    def __init__(self, port: int, *, leaves: bool, chance: random.Random) -> None:
        self._url = f"http://127.0.0.1:{port}/openapi/changes?kind=publications"
        self._leaves = leaves
        self._chance = chance
        self.first_id: int | None = None
        self.told: list[tuple[int, bytes]] = []
        """Ids and data of all that came after the first event."""
        self.resumed = 0
        self.resets = 0

    @property
    def last_id(self) -> int | None:
        return self.told[-1][0] if self.told else self.first_id

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Until it is cancelled."""
        while True:
            stay = self._chance.uniform(*STAY) if self._leaves else None
            try:
                async with asyncio.timeout(stay):
                    await self._read(session)
            except (TimeoutError, aiohttp.ClientError):
                await asyncio.sleep(self._chance.uniform(0, 0.5))
            self.resumed += 1

    async def _read(self, session: aiohttp.ClientSession) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = str(self.last_id)
        async with session.get(self._url, headers=headers) as answer:
            answer.raise_for_status()
            event: dict[bytes, bytes] = {}
            async for line in answer.content:
                if line.strip() and not line.startswith(b":"):
                    name, _, value = line.rstrip(b"\n").partition(b": ")
                    event[name] = value
                elif event:
                    self._take(event)
                    event = {}

    def _take(self, event: dict[bytes, bytes]) -> None:
        if event[b"event"] == b"reset":
            self.resets += 1
        elif event[b"event"] == b"publications" and self.first_id is None:
            self.first_id = int(event[b"id"])
        else:
            self.told.append((int(event[b"id"]), event[b"event"] + b" " + event[b"data"]))


class Followers:
    """One run. ``table`` is what it found."""

    def __init__(self, folder: Path, *, seconds: float, count: int) -> None:
        self.seconds = seconds
        self.count = count
        self.folder = folder
        self.table = FindingsTable()
        self.wrong: list[str] = []
        self.edits = 0
        self._chance = random.Random(15)

    async def run(self) -> None:
        crds = self.folder / "crds"
        crds.mkdir()
        self._edit(crds)
        replica = Replica(self.folder, 1, "http://127.0.0.1:9")
        config = self.folder / "replica-1.yaml"
        config.write_text(CONFIG.format(port=replica.port, folder=crds))
        await replica.start()
        try:
            await self._follow(replica, crds)
        finally:
            if await replica.end() != -signal.SIGTERM and "Traceback" in replica.log:
                self.wrong.append("the log of the service has a traceback")

    async def _follow(self, replica: Replica, crds: Path) -> None:
        async with AsyncExitStack() as stack:
            front = None
            if nginx() is not None:
                front = await stack.enter_async_context(nginx_in_front(self.folder, [replica]))
            connector = aiohttp.TCPConnector(limit=0)
            timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=connector, timeout=timeout)
            )
            following = [self._following(number, replica.port, front) for number in range(self.count)]
            tasks = [asyncio.create_task(each.run(session)) for each in following]
            try:
                await until(lambda: _all_begun(following), "all follow")
                begun, ended = await self._change(replica, crds)
                await until(lambda: _all_at_end(following), "all were told the last one")
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        self._judge(following, front is not None, begun, ended)

    def _following(self, number: int, port: int, front: int | None) -> Following:
        through = front if front is not None and number < min(THROUGH_NGINX, self.count // 4) else port
        leaves = number % round(1 / LEAVING) == 0
        return Following(through, leaves=leaves, chance=random.Random(number))

    async def _change(self, replica: Replica, crds: Path) -> tuple[float, float]:
        """Edits for as long as the run lasts; the service's memory after a third, and at the end."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        begun: float | None = None
        while (passed := loop.time() - start) < self.seconds:
            self._edit(crds)
            await asyncio.sleep(CHANGE_PAUSE)
            if begun is None and passed > self.seconds / 3:
                begun = await _memory(replica.port)
        await asyncio.sleep(2.5)
        ended = await _memory(replica.port)
        return (ended if begun is None else begun), ended

    def _edit(self, crds: Path) -> None:
        self.edits += 1
        names = self._chance.sample("abcdefghijklmnopqrstuvwxyz", 6)
        fields = {key: {"type": "string"} for key in (*names, f"n{self.edits}")}
        text = yaml.safe_dump(definition({"type": "object", "properties": fields}))
        (crds / "new").write_text(text)
        (crds / "new").replace(crds / "widgets.yaml")

    def _judge(self, following: list[Following], by_nginx: bool, begun: float, ended: float) -> None:
        longest = max(following, key=lambda each: len(each.told)).told
        published = dict(longest)
        for number, each in enumerate(following):
            ids = [identity for identity, _ in each.told]
            if ids != sorted(set(ids)):
                self.wrong.append(f"follower {number} was told an id twice, or out of order")
            since = each.first_id or 0
            if each.told != [(identity, data) for identity, data in longest if identity > since]:
                self.wrong.append(f"follower {number} was not told what the others were")
        resumed = sum(each.resumed for each in following)
        resets = sum(each.resets for each in following)
        if resets:
            self.wrong.append(f"{resets} resets, and no follower was slow")
        if len(published) < self.seconds / 4:
            self.wrong.append(f"only {len(published)} publications in {self.seconds:g} s")
        if ended - begun > GROWTH_MAX:
            self.wrong.append(f"the service grew by {ended - begun:.0f} MiB")
        told = sum(len(each.told) for each in following)
        self.table.add(
            f"{len(following)} followers, {self.seconds:g} s",
            f"{len(published)} publications, {told:,} events",
            "each told the same, none lost, none doubled" if not self.wrong else "broken",
        )
        self.table.add("followers that left and came back", f"{resumed} times", f"{resets} resets")
        if by_nginx:
            through = min(THROUGH_NGINX, self.count // 4)
            self.table.add("of these through nginx", f"{through} followers", "as the others")
        self.table.add(
            "memory of the service", f"{begun:.0f} MiB after a third", f"{ended:.0f} MiB at the end"
        )


async def _all_begun(following: list[Following]) -> bool:
    return all(each.first_id is not None for each in following)


async def _all_at_end(following: list[Following]) -> bool:
    return len({each.last_id for each in following}) == 1


async def _memory(port: int) -> float:
    """MiB resident."""
    text = (await fetch(port, "/metrics")).decode()
    found = re.search(r"^process_resident_memory_bytes (\S+)$", text, re.MULTILINE)
    return float(found[1]) / (1 << 20) if found else 0.0


def stress(seconds: float, followers: int) -> Followers:
    with tempfile.TemporaryDirectory() as folder:
        run = Followers(Path(folder), seconds=seconds, count=followers)
        asyncio.run(run.run())
        return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--followers", type=int, default=256)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    arguments = parser.parse_args()
    run = stress(arguments.seconds, arguments.followers)
    print(run.table)
    for wrong in run.wrong[:20]:
        print(f"BROKEN: {wrong}")
    if arguments.write is not None:
        command = f"python tests/stress/stress_followers.py --seconds {arguments.seconds:g}"
        run.table.write_into(arguments.write, maker=Path(__file__).name, command=command)
    sys.exit(1 if run.wrong else 0)


if __name__ == "__main__":
    main()

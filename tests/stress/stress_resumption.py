"""Three replicas of several backends that are killed and restarted, and readers that come back to any.

    python tests/stress/stress_resumption.py [--publications 10000] [--readers 24]

Loopback only; ends by itself. Definitions of four directories change all the time; two of the replicas keep
a state directory, one does not. Readers of publications and of changes leave, and come back to any replica
with their last id. Prints a table in Markdown; exits 1 when a promise was broken:

* an event is told once to a reader, and the ids of one log have no gap unless a reset says so;
* when all is quiet, every reader of publications has what is published.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp
import orjson
import yaml

from data.compared import definition
from specmux_aggregator.changes.log import base_of
from stress.findings_table import FindingsTable
from stress.replicas import Replica, fetch, is_ready, until

BACKENDS: Final = 4
DEFINITIONS: Final = 10
"""Of each backend."""
TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=30)
PAUSE: Final = 0.2


class Reader:
    """A client that follows one feed, now here and now there, and keeps its last id."""

    def __init__(self, kind: str, ports: list[int], chance: Random) -> None:
        self.kind = kind
        self.state: dict[str, Any] = {}
        self.told = 0
        self.resumed = 0
        self.anew = 0
        self.wrong: list[str] = []
        self.is_steady = False
        """Stays where it is, when no replica is killed any more."""
        self._ports = ports
        self._chance = chance
        self._last: int | None = None
        self._seen: set[int] = set()

    async def run(self) -> None:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            while True:
                try:
                    async with asyncio.timeout(None if self.is_steady else self._chance.uniform(0.5, 4)):
                        await self._follow(session)
                except (TimeoutError, aiohttp.ClientError, OSError):
                    pass
                self.resumed += 1
                await asyncio.sleep(self._chance.uniform(0, PAUSE))

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        since = "" if self._last is None else f"&since={self._last}"
        url = f"http://127.0.0.1:{self._chance.choice(self._ports)}/openapi/changes?kind={self.kind}{since}"
        async with session.get(url, headers={"Accept": "application/jsonl"}) as answer:
            if answer.status != 200:
                return
            async for line in answer.content:
                if line.strip() and line.endswith(b"\n"):
                    self._take(orjson.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        name, number, data = event["event"], event["id"], event["data"]
        if name in ("reset", "publications"):
            self.anew += 1
            if name == "publications":
                self.state = dict(data)
            self._last = number or self._last
            return
        if number in self._seen:
            self.wrong.append(f"{self.kind}: {number} was told twice")
        if self._last is None:
            pass  # the first that it is told
        elif base_of(number) != base_of(self._last):
            self.wrong.append(f"{self.kind}: {number} of another log came after {self._last}, without a word")
        elif number != self._last + 1:
            self.wrong.append(f"{self.kind}: {number} came after {self._last}")
        self._seen.add(number)
        self._last = number
        self.told += len(data) if self.kind == "publications" else 1
        if self.kind == "publications":
            self.state |= data


class Resumption:
    """One run. ``table`` is what it found."""

    def __init__(self, folder: Path, *, publications: int, readers: int, seed: int = 1) -> None:
        self.table = FindingsTable()
        self.wrong: list[str] = []
        self._wanted = publications
        self._count = readers
        self._chance = Random(seed)
        self._folder = folder
        self._ends = 0
        self._edits = 0
        self._is_over = False

    async def run(self) -> None:
        for number in range(BACKENDS * DEFINITIONS):
            self._edit(number)
        replicas = [Replica(self._folder, number, config=self._config(number)) for number in range(3)]
        for replica in replicas:
            await _started(replica)
        ports = [replica.port for replica in replicas]
        readers = [
            Reader("publications" if number % 2 else "changes", ports, Random(number))
            for number in range(self._count)
        ]
        tasks = [asyncio.create_task(reader.run()) for reader in readers]
        upheaval = asyncio.create_task(self._upheave(replicas))
        try:
            await self._change(readers)
            self._is_over = True
            await upheaval
            await self._settle(readers, ports)
        finally:
            for task in (upheaval, *tasks):
                task.cancel()
            await asyncio.gather(upheaval, *tasks, return_exceptions=True)
            for replica in replicas:
                await replica.end()
        self._judge(readers)

    def _config(self, number: int) -> str:
        backends = [
            {"name": f"b{each}", "kind": "crds", "directory": str(self._folder / f"crds{each}")}
            for each in range(BACKENDS)
        ]
        config: dict[str, Any] = {
            "polling": {"interval": 1},
            "changes": {"settle": 0.2},
            "backends": backends,
        }
        if number:
            config["state"] = {"directory": str(self._folder / f"state{number}")}
        return yaml.safe_dump(config)

    def _edit(self, number: int) -> None:
        folder = self._folder / f"crds{number % BACKENDS}"
        folder.mkdir(exist_ok=True)
        names = self._chance.sample("abcdefghijklmnop", 5)
        value = definition({"type": "object", "properties": {name: {"type": "string"} for name in names}})
        value["metadata"]["name"] = f"widgets.g{number}.example.com"
        value["spec"]["group"] = f"g{number}.example.com"
        new = folder / f"{number}.new"
        new.write_bytes(orjson.dumps(value))
        new.replace(folder / f"{number}.json")
        self._edits += 1

    async def _change(self, readers: list[Reader]) -> None:
        """Edits until the readers of publications were told so many."""
        while sum(reader.told for reader in readers if reader.kind == "publications") < self._wanted:
            for number in self._chance.sample(range(BACKENDS * DEFINITIONS), 8):
                self._edit(number)
            await asyncio.sleep(0.1)

    async def _upheave(self, replicas: list[Replica]) -> None:
        while not self._is_over:
            await asyncio.sleep(self._chance.uniform(2, 5))
            replica = self._chance.choice(replicas)
            await (replica.kill() if self._chance.random() < 0.6 else replica.end())
            self._ends += 1
            await _started(replica)

    async def _settle(self, readers: list[Reader], ports: list[int]) -> None:
        for reader in readers:
            reader.is_steady = True
        following = [reader for reader in readers if reader.kind == "publications"]

        async def is_so() -> bool:
            roots = [orjson.loads(await fetch(port, "/openapi/v3"))["paths"] for port in ports]
            published = [
                {name: each["serverRelativeURL"].rpartition("hash=")[2] for name, each in root.items()}
                for root in roots
            ]
            states = [
                {name: each["hash"] for name, each in reader.state.items() if each} for reader in following
            ]
            return all(each == published[0] for each in (*published, *states))

        try:
            await until(is_so, "readers have what is published")
        except AssertionError as error:
            self.wrong.append(str(error))

    def _judge(self, readers: list[Reader]) -> None:
        self.wrong += [wrong for reader in readers for wrong in reader.wrong]
        for kind in ("publications", "changes"):
            those = [reader for reader in readers if reader.kind == kind]
            told = sum(each.told for each in those)
            self.table.add(
                f"{len(those)} readers of {kind}, three replicas of {BACKENDS} backends",
                f"{told:,} told, {sum(each.resumed for each in those):,} times resumed",
                f"{sum(each.anew for each in those):,} times all anew or a reset; "
                + ("none lost, none doubled" if not self.wrong else "broken"),
            )
        self.table.add("replicas killed or stopped", f"{self._ends} times", f"{self._edits:,} edits")
        if any(not reader.told for reader in readers):
            self.wrong.append("a reader was told nothing")


async def _started(replica: Replica) -> None:
    """On a busy machine a start takes longer than a test's deadline."""
    try:
        await replica.start()
    except AssertionError:
        await until(lambda: is_ready(replica.port), "a replica is ready at last")


def stress(publications: int, readers: int) -> Resumption:
    with tempfile.TemporaryDirectory() as folder:
        run = Resumption(Path(folder), publications=publications, readers=readers)
        asyncio.run(run.run())
        return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--publications", type=int, default=10_000)
    parser.add_argument("--readers", type=int, default=24)
    arguments = parser.parse_args()
    run = stress(arguments.publications, arguments.readers)
    print(run.table)
    for wrong in run.wrong[:20]:
        print(f"BROKEN: {wrong}")
    sys.exit(1 if run.wrong else 0)


if __name__ == "__main__":
    main()

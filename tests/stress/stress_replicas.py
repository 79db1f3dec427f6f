"""Three replicas behind nginx while their backend changes and they are replaced, and shared caches in front.

    python tests/stress/stress_replicas.py [--seconds 30] [--reads 5000] [--write docs/benchmarks/stress.md]

Loopback only; ends by itself. Needs nginx, and varnishd for its part (Debian packages nginx-light, varnish).
Prints a table in Markdown, and writes it into a page where one is named; exits 1 when a promise was broken:

* with a changing backend, at most one document request in a thousand is redirected, and never twice in a row;
* equal hashes on all replicas; replacing all three under load costs no client an error;
* three replicas before three servers of one backend, while these change one by one, hang and are killed, and
  replicas are killed: nothing but 200 and documented 503, every body what its URL says, no 404;
* behind a cache, 200 requests cost one; a backend that goes back to an earlier document is believed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp
import orjson

from fakes.faulty_backend import FaultyBackend, document
from stress.findings_table import FindingsTable
from stress.replicas import (
    TIMEOUT,
    Clients,
    Replica,
    Seen,
    fetch,
    nginx,
    nginx_in_front,
    until,
    varnish,
    varnish_in_front,
)
from stress.service_world import documents

CLIENTS = 8
CHANGE_PAUSE = 2.0
"""Seconds between changes of a document."""

FULL = 30.0
"""Seconds from which on the share of redirects is judged."""

REDIRECTS_MAX = 0.001
HARM_PAUSE = 5.0
KILL_PAUSE = 12.0
"""Seconds between harms of a server, and between kills of a replica."""

PEERS = """\
polling: {{interval: 1, connect_timeout: 1, idle_timeout: 2, total_timeout: 5}}
documents: {{prefetch: "on"}}
backends: [{{name: cluster, urls: {urls}}}]
"""

REQUESTS = 200
CYCLED = "apis/cycled.example.com/v1"


class Replicas:
    """One run. ``table`` is what it found."""

    def __init__(self, folder: Path, *, seconds: float, reads: int = 0) -> None:
        """``reads``: documents that are read of the servers of one backend; 0: that part is left out."""
        self.seconds = seconds
        self.reads = reads
        self.folder = folder
        keys = sorted(documents().items())[:12]
        self.backend = FaultyBackend({**dict(keys), CYCLED: document(CYCLED, "A")})
        self.replicas: list[Replica] = []
        self.table = FindingsTable()
        self.wrong: list[str] = []
        self.changes = 0

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.backend)
            self.replicas = [Replica(self.folder, number, self.backend.url) for number in (1, 2, 3)]
            for replica in self.replicas:
                await replica.start()
                stack.push_async_callback(replica.kill)
            port = await stack.enter_async_context(nginx_in_front(self.folder, self.replicas))
            if self.reads:
                await self._peers()
            await self._redirects(port)
            await self._same_hashes()
            await self._replaced(port)
            await self._cached("nginx", port)
            await self._rolled_back("nginx", port)
            if varnish() is not None:
                port = await stack.enter_async_context(varnish_in_front(self.folder, self.replicas[0]))
                await self._cached("Varnish", port)
                await self._rolled_back("Varnish", port)
            else:
                self.table.add("Varnish", "not installed here", "not tried")
            for replica in self.replicas:
                if (code := await replica.end()) != 0 or "Traceback" in replica.log:
                    self.wrong.append(f"a replica ended with {code}:\n{replica.log[-2000:]}")

    async def _peers(self) -> None:
        """Three replicas before three servers of one backend."""
        folder = self.folder / "peers"
        folder.mkdir()
        async with AsyncExitStack() as stack:
            peers = [FaultyBackend(dict(self.backend.documents)) for _ in range(3)]
            for peer in peers:
                await stack.enter_async_context(peer)
            config = PEERS.format(urls=orjson.dumps([peer.url for peer in peers]).decode())
            replicas = [Replica(folder, number, config=config) for number in (1, 2, 3)]
            for replica in replicas:
                await replica.start()
                stack.push_async_callback(replica.kill)
            port = await stack.enter_async_context(nginx_in_front(folder, replicas))
            clients = Clients(port, takes_unavailable=True)
            counts: Counter[str] = Counter()
            upheaval = [_churn(peers, counts), _harm(peers, counts), _kill(replicas, counts)]
            tasks = [asyncio.create_task(work) for work in (clients.read(CLIENTS), *upheaval)]
            try:
                while clients.seen.documents < self.reads:
                    ended, _ = await asyncio.wait(tasks, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                    if ended:
                        break
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
            seen = clients.seen
            self.wrong += seen.wrong
            self.wrong += [repr(item) for item in results if isinstance(item, Exception)]
            told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            self.table.add(
                f"{seen.documents:,} documents, three replicas before three servers",
                told,
                f"{len(seen.wrong)} wrong, {seen.unavailable} documented 503, {seen.redirects} redirects",
            )

    async def _redirects(self, port: int) -> None:
        before = self.changes
        seen = await self._under_load(port, asyncio.sleep(self.seconds))
        share = seen.redirects / max(1, seen.documents)
        # A change costs about one redirect; their share says something over many requests only.
        if share > REDIRECTS_MAX and self.seconds >= FULL:
            self.wrong.append(f"{seen.redirects} redirects in {seen.documents} documents")
        if seen.longest > 1:
            self.wrong.append(f"a chain of {seen.longest} redirects")
        self.table.add(
            f"{seen.documents:,} documents through nginx, {CLIENTS} clients, {self.seconds:g} s",
            f"{self.changes - before} changes of the backend",
            f"{seen.redirects} redirects ({share:.3%}), longest chain {seen.longest}",
        )

    async def _same_hashes(self) -> None:
        """All replicas say the same once the backend stands still."""

        async def is_agreed() -> bool:
            return len({await fetch(replica.port, "/openapi/v3") for replica in self.replicas}) == 1

        await until(is_agreed, "the replicas agree")
        self.table.add("roots of the three replicas", "backend at rest", "equal, byte for byte")

    async def _replaced(self, port: int) -> None:
        seen = await self._under_load(port, self._replace())
        documents = f"{seen.documents:,} documents"
        self.table.add("replacing all three under load", documents, f"{len(seen.wrong)} errors")

    async def _replace(self) -> None:
        for replica in self.replicas:
            await asyncio.sleep(1)
            if (code := await replica.end()) != 0:
                self.wrong.append(f"a replica ended with {code}")
            await replica.start()
        await asyncio.sleep(1)

    async def _under_load(self, port: int, work: Coroutine[Any, Any, None]) -> Seen:
        clients = Clients(port)
        tasks = [asyncio.create_task(clients.read(CLIENTS)), asyncio.create_task(self._change())]
        try:
            await work
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        self.wrong += clients.seen.wrong
        self.wrong += [repr(item) for item in results if isinstance(item, Exception)]
        return clients.seen

    async def _change(self) -> None:
        """Change one document after the other, for ever."""
        for key in sorted(self.backend.documents.keys() - {CYCLED}) * 1000:
            await asyncio.sleep(CHANGE_PAUSE)
            self.changes += 1
            tree = orjson.loads(self.backend.documents[key])
            tree["info"]["version"] = str(self.changes)
            self.backend.documents[key] = orjson.dumps(tree)

    async def _cached(self, name: str, port: int) -> None:
        """Each form costs the origin one request, however many ask for it."""
        await self._turn_to(f"cached by {name}")
        url = (await _paths(self.replicas[0].port))[CYCLED]["serverRelativeURL"]
        before = await self._hits()
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            client = Clients(port)
            bodies = {await client.document(session, CYCLED, url) for _ in range(REQUESTS)}
        self.wrong += client.seen.wrong
        cost = await self._hits() - before
        if cost != 1 or len(bodies) != 1:
            self.wrong.append(f"{name}: {REQUESTS} requests cost {cost}, {len(bodies)} bodies")
        self.table.add(f"{name} as a cache", f"{REQUESTS} requests for one URL", f"{cost} at the origin")

    async def _rolled_back(self, name: str, port: int) -> None:
        """A, B, A: at each step clients get what the backend has, through the cache."""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            client = Clients(port)
            for step in ("A", "B", "A", "B", "A"):
                body = await self._turn_to(f"{step} of {name}")
                paths = orjson.loads((await client.get(session, "/openapi/v3"))[2])["paths"]
                if await client.document(session, CYCLED, paths[CYCLED]["serverRelativeURL"]) != body:
                    self.wrong.append(f"{name} served something else for {step}")
        self.wrong += client.seen.wrong
        self.table.add(f"A → B → A → B → A behind {name}", "5 reads", "each the backend's own document")

    async def _turn_to(self, marker: str) -> bytes:
        """Change one document, and wait for all replicas to say so."""
        body = self.backend.documents[CYCLED] = document(CYCLED, marker)

        async def is_seen() -> bool:
            for replica in self.replicas:
                url = (await _paths(replica.port))[CYCLED]["serverRelativeURL"]
                if await fetch(replica.port, url) != body:
                    return False
            return True

        await until(is_seen, f"all replicas publish {marker}")
        return body

    async def _hits(self) -> int:
        return sum([await replica.hits() for replica in self.replicas])


async def _churn(peers: list[FaultyBackend], counts: Counter[str]) -> None:
    """Change one document after the other, at one server after the other; definitions come."""
    keys = sorted(peers[0].documents)
    for number in itertools.count():
        key = keys[number % len(keys)]
        body = document(key, f"change {number}")
        extra = f"apis/extra{number % 3}.example.com/v1"
        for peer in peers:
            peer.documents[key] = body
            if number % 6 < 3:
                peer.documents[extra] = document(extra)
            await asyncio.sleep(CHANGE_PAUSE / 4)
        counts["changes"] += 1
        await asyncio.sleep(CHANGE_PAUSE / 4)


async def _harm(peers: list[FaultyBackend], counts: Counter[str]) -> None:
    """Have one server at a time refuse everybody, or say nothing."""

    async def silence(_: object) -> None:
        await asyncio.sleep(3600)

    for number in itertools.count():
        peer = peers[number % len(peers)]
        await asyncio.sleep(HARM_PAUSE)
        if number % 2:
            peer.fault = silence
            counts["silences"] += 1
        else:
            await peer.refuse()
            counts["deaths of servers"] += 1
        await asyncio.sleep(HARM_PAUSE)
        peer.fault = None
        await peer.listen()


async def _kill(replicas: list[Replica], counts: Counter[str]) -> None:
    for number in itertools.count():
        await asyncio.sleep(KILL_PAUSE)
        replica = replicas[number % len(replicas)]
        await replica.kill()
        counts["kills of replicas"] += 1
        await replica.start()


async def _paths(port: int) -> dict[str, dict[str, str]]:
    paths: dict[str, dict[str, str]] = orjson.loads(await fetch(port, "/openapi/v3"))["paths"]
    return paths


def stress(seconds: float, reads: int = 0) -> Replicas:
    """Run it all; the run with its table and what was wrong."""
    with tempfile.TemporaryDirectory() as folder:
        run = Replicas(Path(folder), seconds=seconds, reads=reads)
        asyncio.run(run.run())
    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--reads", type=int, default=5000, help="of three servers; 100000 takes an hour")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    arguments = parser.parse_args()
    if nginx() is None:
        sys.exit("nginx is not installed: apt-get install nginx-light")
    run = stress(arguments.seconds, arguments.reads)
    print(run.table)
    for wrong in run.wrong:
        print(f"BROKEN: {wrong}")
    if arguments.write is not None:
        options = f"--seconds {arguments.seconds:g} --reads {arguments.reads}"
        command = f"python tests/stress/stress_replicas.py {options}"
        run.table.write_into(arguments.write, maker=Path(__file__).name, command=command)
    sys.exit(1 if run.wrong else 0)


if __name__ == "__main__":
    main()

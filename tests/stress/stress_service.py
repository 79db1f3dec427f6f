"""The service under load while everything around it goes wrong. Loopback only; ends by itself.

    python tests/stress/stress_service.py [--form short|middle|long] [--write docs/benchmarks/stress.md]

Each form is bounded by its counts (``FORMS``): some 20 s, 3 and 15 minutes. Prints a table in Markdown, and
writes it into a page where one is named; exits 1 when a promise was broken:

* every body of a 200 is what the hash in its URL says, in every form;
* a backend that is well sees every answer of its documents good, whatever happens beside it;
* no 5xx but 503, no traceback in the log, memory and descriptors within bounds, an orderly end.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
import sys
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.test_http_malformed import MALFORMED
from stress.findings_table import FindingsTable
from stress.service_load import Findings, Readers, bad_requests, bent_requests, drip, random_hashes, stall
from stress.service_world import Service, World
from stress.upheavals import libfaketime, rotate, set_clock

Work = Coroutine[Any, Any, None]

MIB = 1024 * 1024
RSS_MAX = 300 * MIB
GROWTH_MAX = 5 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How much of everything."""

    seconds: float
    """Under load and faults."""
    clients: int
    slow: int
    """Clients that stall, and as many that drip."""
    bad_requests: int
    unknown_hashes: int
    kills: int
    rotations: int


STEADY = 120.0
"""Seconds in which everything is there, on a machine that has other work."""

FORMS = {
    "short": Form(
        seconds=3, clients=16, slow=200, bad_requests=500, unknown_hashes=5_000, kills=2, rotations=2
    ),
    "middle": Form(
        seconds=60, clients=16, slow=500, bad_requests=50_000, unknown_hashes=200_000, kills=20, rotations=10
    ),
    "long": Form(
        seconds=300,
        clients=64,
        slow=500,
        bad_requests=50_000,
        unknown_hashes=200_000,
        kills=200,
        rotations=100,
    ),
}


class Stress:
    """One run. ``table`` is what it found."""

    def __init__(self, folder: Path, form: Form) -> None:
        self.form = form
        self.folder = folder
        self.world = World(folder)
        self.findings = Findings()
        self.steady = frozenset(self.world.steady.documents)
        self.table = FindingsTable()

    async def run(self) -> None:
        async with self.world:
            service = Service(self.world, full_disk=True)
            await service.start()
            try:
                await self._until_steady(service)
                await self._under_load(service)
                await self._bad_requests(service)
                await self._unknown_hashes(service)
                await self._end(service, "end after all of this")
            finally:
                await service.end(signal.SIGKILL)
            await self._kills()
        await self._upheavals()

    async def _until_steady(self, service: Service) -> None:
        """What goes wrong until then is a start's own; what went wrong before stays."""
        async with asyncio.timeout(STEADY):
            while True:
                findings = Findings()
                found = await Readers(service, findings, steady=self.steady).once()
                if found >= len(self.steady) + 2 and not findings.wrong:
                    return
                await asyncio.sleep(0.1)

    def _readers(self, service: Service) -> Readers:
        return Readers(service, self.findings, steady=self.steady)

    async def _under_load(self, service: Service) -> None:
        self.findings.answers.clear()
        self.findings.steady = 0
        rounds = asyncio.create_task(self._slow_clients(service))
        peak, descriptors = await self._while(
            service,
            self.form.seconds,
            self._readers(service).read(self.form.clients),
            self.world.change(0.2),
            self.world.misbehave(self.form.seconds / 60),
            self.world.reload(service, self.form.seconds / 30),
        )
        await rounds
        answers = ", ".join(f"{count:,} × {code}" for code, count in sorted(self.findings.answers.items()))
        self.table.add("load", f"{self.form.clients} keep-alive clients, {self.form.seconds:g} s", answers)
        self.table.add(
            "of these, for the backend that is well", f"{self.findings.steady:,} answers", self._verdict()
        )
        self.table.add(
            "backend faults", f"{self.world.faults}", f"{self.findings.unavailable} × 503 for what nobody had"
        )
        self.table.add("reloads, one in three of a broken file", f"{self.world.reloads}", self._verdict())
        self.table.add(
            "changed documents", f"{self.world.changes}", f"{len(self.findings.forms)} forms checked"
        )
        warnings = service.log.count("state directory:")
        if service.has_full_disk and not 1 <= warnings <= self.form.seconds:
            self.findings.note(f"{warnings} warnings of a full disk")
        disk = f"{warnings} warnings" if service.has_full_disk else "not tried: no mount namespace here"
        self.table.add("state directory on a full disk", "tmpfs of 2 MiB", disk)
        self.table.add(
            "stalled and dripping clients at once", f"{self.form.slow} and {self.form.slow}", "all cut off"
        )
        self.table.add(
            "memory (RSS), descriptors", f"{peak // MIB} MiB, {descriptors}", f"≤ {RSS_MAX // MIB} MiB"
        )

    async def _while(
        self, service: Service, seconds: float, *work: Coroutine[Any, Any, None]
    ) -> tuple[int, int]:
        """Run for a while; the most memory and descriptors in use meanwhile."""
        tasks = [asyncio.create_task(item) for item in work]
        peak = descriptors = 0
        for _ in range(int(seconds / 0.25)):
            done, _ = await asyncio.wait(tasks, timeout=0.25, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            peak, descriptors = max(peak, service.rss), max(descriptors, service.descriptors)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if peak > RSS_MAX:
            self.findings.note(f"{peak // MIB} MiB of memory")
        await self.world.bad.listen()
        self.world.bad.fault = self.world.legacy.fault = None
        self.world.configure()
        return peak, descriptors

    async def _slow_clients(self, service: Service) -> None:
        largest = max(self.steady, key=lambda key: len(self.world.steady.documents[key]))
        await asyncio.gather(
            stall(service, f"/openapi/v3/{largest}", self.form.slow), drip(service, self.form.slow)
        )
        async with asyncio.timeout(20):
            while service.descriptors > 150:
                await asyncio.sleep(0.2)

    async def _bad_requests(self, service: Service) -> None:
        bent = bent_requests(min(self.steady), self.form.bad_requests)
        for name, requests in (("written", MALFORMED), ("generated", bent)):
            statuses = await bad_requests(service, requests, self.findings)
            told = ", ".join(f"{count:,} × {code or 'closed'}" for code, count in sorted(statuses.items()))
            self.table.add(f"bad requests, {name}", f"{len(requests):,}", told)

    async def _unknown_hashes(self, service: Service) -> None:
        key, count = min(self.steady), self.form.unknown_hashes
        await random_hashes(service, key, 5_000)
        before = service.rss
        statuses = await random_hashes(service, key, count)
        growth = service.rss - before
        if set(statuses) != {301} or growth > GROWTH_MAX:
            self.findings.note(f"unknown hashes: {dict(statuses)}, memory {growth / MIB:+.1f} MiB")
        self.table.add("unknown hashes", f"{count:,}", f"all 301, memory {growth / MIB:+.1f} MiB")

    async def _kills(self) -> None:
        choice, count = random.Random(3), self.form.kills
        service = Service(self.world)
        for number in range(count):
            await service.start()
            try:
                if number == 0:
                    await self._until_steady(service)
                # The backend that is well is down, or comes up, during every other start: its documents stay.
                await self._readers(service).once()
                await self.world.steady.listen()
                await self._while(
                    service,
                    choice.uniform(0.3, 1.5),
                    self.world.change(0.02),
                    _then_wait(self._readers(service).once()),
                )
                await self._readers(service).once()
            finally:
                await service.end(signal.SIGKILL)
            if number % 2:
                await self.world.steady.refuse()
        await self.world.steady.listen()
        await service.start()
        await self._end(service, "end after the kills")
        self.table.add(
            "kill -9 with a state directory", f"{count}", "nothing torn, the last good documents served"
        )

    async def _upheavals(self) -> None:
        folder = self.folder / "rotations"
        folder.mkdir()
        seen, wrong = await rotate(folder, self.form.rotations)
        self.findings.wrong += wrong
        self.table.add(
            "certificate and configuration exchanged under load", f"{self.form.rotations} times each", seen
        )
        library = libfaketime()
        if library is None:
            self.table.add("clock a year ahead and a year back", "not tried: no libfaketime here", "")
            return
        folder = self.folder / "clock"
        folder.mkdir()
        seen, wrong = await set_clock(folder, library)
        self.findings.wrong += wrong
        self.table.add("clock a year ahead, a year back, and home", "under load", seen)

    async def _end(self, service: Service, what: str) -> None:
        code = await service.end()
        log = service.log
        if code != 0 or "Traceback" in log or "Unclosed" in log:
            self.findings.note(f"{what}: code {code}, log:\n{log[-3000:]}")
        wrong = re.findall(r".* ERROR (?!the changed configuration is refused).*", log)
        if wrong:
            self.findings.note(f"{what}: {wrong[0]}")
        self.table.add(
            what, "SIGTERM", f"code {code}, no traceback in {len(log.splitlines()):,} lines of log"
        )

    def _verdict(self) -> str:
        return f"{len(self.findings.wrong)} wrong"


async def _then_wait(work: Coroutine[Any, Any, Any]) -> None:
    """Run it, then wait to be cancelled."""
    await work
    await asyncio.Event().wait()


def stress(form: Form) -> Stress:
    """Run it all; the run with its table and findings."""
    with tempfile.TemporaryDirectory() as folder:
        run = Stress(Path(folder), form)
        asyncio.run(run.run())
    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=sorted(FORMS), default="long")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    arguments = parser.parse_args()
    run = stress(FORMS[arguments.form])
    print(run.table)
    for wrong in run.findings.wrong:
        print(f"BROKEN: {wrong}")
    if arguments.write is not None:
        command = f"python tests/stress/stress_service.py --form {arguments.form}"
        run.table.write_into(arguments.write, maker=Path(__file__).name, command=command)
    sys.exit(1 if run.findings.wrong else 0)


if __name__ == "__main__":
    main()

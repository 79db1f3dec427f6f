"""The service under load while everything around it goes wrong. Loopback only; ends by itself.

    python tests/stress/stress_service.py [--seconds 60]

``--seconds`` is the time under load and faults. What follows is bounded by counts, full ones from 60 seconds
on: bad requests, unknown hashes, kills. Prints a table in Markdown; exits 1 when a promise was broken:

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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.test_http_malformed import MALFORMED
from stress.service_load import Findings, Readers, bad_requests, bent_requests, drip, random_hashes, stall
from stress.service_world import Service, World

Work = Coroutine[Any, Any, None]

MIB = 1024 * 1024
RSS_MAX = 300 * MIB
GROWTH_MAX = 5 * MIB
CLIENTS, STALLED, DRIPPING = 16, 200, 500
FULL = 60.0
"""Seconds from which on all counts are the full ones."""


class Stress:
    """One run. ``table`` is what it found: (what, how much, what came of it)."""

    def __init__(self, folder: Path, *, seconds: float) -> None:
        self.seconds = seconds
        self.is_full = seconds >= FULL
        self.world = World(folder)
        self.findings = Findings()
        self.steady = frozenset(self.world.steady.documents)
        self.table: list[tuple[str, str, str]] = []

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

    async def _until_steady(self, service: Service) -> None:
        async with asyncio.timeout(30):
            while await self._readers(service).once() < len(self.steady) + 2:
                self.findings.wrong.clear()
                await asyncio.sleep(0.1)
        self.findings.wrong.clear()

    def _readers(self, service: Service) -> Readers:
        return Readers(service, self.findings, steady=self.steady)

    async def _under_load(self, service: Service) -> None:
        self.findings.answers.clear()
        self.findings.steady = 0
        rounds = asyncio.create_task(self._slow_clients(service))
        peak, descriptors = await self._while(
            service,
            self.seconds,
            self._readers(service).read(CLIENTS),
            self.world.change(0.2),
            self.world.misbehave(self.seconds / 60),
            self.world.reload(service, self.seconds / 30),
        )
        await rounds
        answers = ", ".join(f"{count:,} × {code}" for code, count in sorted(self.findings.answers.items()))
        self._row("load", f"{CLIENTS} keep-alive clients, {self.seconds:g} s", answers)
        self._row(
            "of these, for the backend that is well", f"{self.findings.steady:,} answers", self._verdict()
        )
        self._row(
            "backend faults", f"{self.world.faults}", f"{self.findings.unavailable} × 503 for what nobody had"
        )
        self._row("reloads, one in three of a broken file", f"{self.world.reloads}", self._verdict())
        self._row("changed documents", f"{self.world.changes}", f"{len(self.findings.forms)} forms checked")
        warnings = service.log.count("state directory:")
        if service.has_full_disk and not 1 <= warnings <= self.seconds:
            self.findings.note(f"{warnings} warnings of a full disk")
        disk = f"{warnings} warnings" if service.has_full_disk else "not tried: no mount namespace here"
        self._row("state directory on a full disk", "tmpfs of 2 MiB", disk)
        self._row("stalled and dripping clients at once", f"{STALLED} and {DRIPPING}", "all cut off")
        self._row("memory (RSS), descriptors", f"{peak // MIB} MiB, {descriptors}", f"≤ {RSS_MAX // MIB} MiB")

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
        await asyncio.gather(stall(service, f"/openapi/v3/{largest}", STALLED), drip(service, DRIPPING))
        async with asyncio.timeout(20):
            while service.descriptors > 150:
                await asyncio.sleep(0.2)

    async def _bad_requests(self, service: Service) -> None:
        bent = bent_requests(min(self.steady), 50_000 if self.is_full else 500)
        for name, requests in (("written", MALFORMED), ("generated", bent)):
            statuses = await bad_requests(service, requests, self.findings)
            told = ", ".join(f"{count:,} × {code or 'closed'}" for code, count in sorted(statuses.items()))
            self._row(f"bad requests, {name}", f"{len(requests):,}", told)

    async def _unknown_hashes(self, service: Service) -> None:
        key, count = min(self.steady), 200_000 if self.is_full else 5_000
        await random_hashes(service, key, 5_000)
        before = service.rss
        statuses = await random_hashes(service, key, count)
        growth = service.rss - before
        if set(statuses) != {301} or growth > GROWTH_MAX:
            self.findings.note(f"unknown hashes: {dict(statuses)}, memory {growth / MIB:+.1f} MiB")
        self._row("unknown hashes", f"{count:,}", f"all 301, memory {growth / MIB:+.1f} MiB")

    async def _kills(self) -> None:
        choice, count = random.Random(3), 20 if self.is_full else 2
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
        self._row(
            "kill -9 with a state directory", f"{count}", "nothing torn, the last good documents served"
        )

    async def _end(self, service: Service, what: str) -> None:
        code = await service.end()
        log = service.log
        if code != 0 or "Traceback" in log or "Unclosed" in log:
            self.findings.note(f"{what}: code {code}, log:\n{log[-3000:]}")
        wrong = re.findall(r".* ERROR (?!the changed configuration is refused).*", log)
        if wrong:
            self.findings.note(f"{what}: {wrong[0]}")
        self._row(what, "SIGTERM", f"code {code}, no traceback in {len(log.splitlines()):,} lines of log")

    def _verdict(self) -> str:
        return f"{len(self.findings.wrong)} wrong"

    def _row(self, *cells: str) -> None:
        assert len(cells) == 3
        self.table.append((cells[0], cells[1], cells[2]))


async def _then_wait(work: Coroutine[Any, Any, Any]) -> None:
    """Run it, then wait to be cancelled."""
    await work
    await asyncio.Event().wait()


def stress(seconds: float) -> Stress:
    """Run it all; the run with its table and findings."""
    with tempfile.TemporaryDirectory() as folder:
        run = Stress(Path(folder), seconds=seconds)
        asyncio.run(run.run())
    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    run = stress(parser.parse_args().seconds)
    print("| what | how much | what came of it |\n|---|---|---|")
    for row in run.table:
        print(f"| {' | '.join(row)} |")
    for wrong in run.findings.wrong:
        print(f"\nBROKEN: {wrong}")
    sys.exit(1 if run.findings.wrong else 0)


if __name__ == "__main__":
    main()

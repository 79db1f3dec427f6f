"""A reader that is killed, hangs or runs out of memory while 64 clients ask it: does anybody else wait?

    python tests/stress/stress_reader.py [--seconds 20] [--clients 64] [--write docs/benchmarks/stress.md]

Loopback only; ends by itself. A process of its own asks for ``/livez`` and for a document all the time, and
says how late the machine itself wakes it up: on one that has other work, that is what the rest is compared
with. Prints a table in Markdown, and a line for each part with its p99; exits 1 when a promise was broken:

* they are answered with 200, 429 or 503, the last two with ``Retry-After``, and with 200 at the end;
* other requests are at most 10 ms slower (p99) than with a reader that is well, the machine's lag aside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import aiohttp

from running.process import Process, specmux
from shared_data import DATA
from stress.findings_table import FindingsTable

PROBE_PAUSE = 0.005
SLOWER_MAX = 10.0
"""Milliseconds."""
DOCUMENT = "/openapi/v3/apis/apps/v1"
ASKED = (
    *(f"search?q={words}" for words in ("replicas", "restart+policy", "pod", "volume", "port", "schedule")),
    *(f"ui/kind/{kind}" for kind in ("api/v1/Pod", "apis/apps/v1/Deployment", "apis/batch/v1/CronJob")),
    *(f"explain/{kind}?recursive" for kind in ("api/v1/Service", "api/v1/Secret")),
)
TARGETS = ("/livez", DOCUMENT)
Latencies = dict[str, tuple[float, float]]
"""Median and p99 in milliseconds, by what was asked for."""


def probe(port: int, seconds: float) -> Latencies:
    """How long requests took, and by how much the machine woke this process too late. In a process of its
    own."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    found: dict[str, list[float]] = {name: [] for name in ("machine", *TARGETS)}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for target in TARGETS:
            before = time.monotonic()
            time.sleep(PROBE_PAUSE)
            asked = time.monotonic()
            connection.request("GET", target, headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, (target, answer.status)
            found[target].append(1000 * (time.monotonic() - asked))
            found["machine"].append(1000 * (asked - before - PROBE_PAUSE))
    return {name: (percentile(each, 50), percentile(each, 99)) for name, each in found.items()}


async def clients(port: int, seconds: float, count: int) -> dict[str, int]:
    """Answers by status; "wrong" are those that break the promise. In a process of its own."""
    told: Counter[str] = Counter()
    until = time.monotonic() + seconds

    async def ask(session: aiohttp.ClientSession, number: int) -> None:
        turn = number
        while time.monotonic() < until:
            turn += 1
            url = f"http://127.0.0.1:{port}/openapi/{ASKED[turn % len(ASKED)]}"
            async with session.get(url) as answer:
                await answer.read()
                told[str(answer.status)] += 1
                is_refusal = answer.status in (429, 503) and "Retry-After" in answer.headers
                told["wrong"] += not (is_refusal or answer.status == 200)
                if is_refusal:
                    await asyncio.sleep(0.1)

    timeout = aiohttp.ClientTimeout(total=60)
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as group,
    ):
        for number in range(count):
            group.create_task(ask(session, number))
    return dict(told)


class ReaderFaults:
    """One run. ``table`` is what it found."""

    def __init__(self, service: Process, *, seconds: float, count: int) -> None:
        self._service = service
        self._seconds = seconds
        self._count = count
        self._others: set[int] = set()
        self.table = FindingsTable()
        self.figures: list[str] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        self._service.until(self._is_warm, "documents and workers")
        self._others = set(processes_below(self._service.pid))
        self._phase("nobody asks the reader", count=0)
        self._service.until(self._searches, "an answer to a search")
        well = self._phase("clients search and read pages, the reader is well")
        for title, every, fault in FAULTS:
            self._judge(title, self._phase(title, every=every, fault=fault), well)
        self._service.until(self._searches, "an answer to a search after all of this")
        self.table.add("search after all of this", "1", "200")

    def _phase(
        self,
        title: str,
        *,
        count: int | None = None,
        every: float = 1.0,
        fault: Callable[[int], None] | None = None,
    ) -> Latencies:
        arguments = [str(self._service.port), str(self._seconds)]
        asking = self._begun("clients", *arguments, str(self._count if count is None else count), nice=10)
        probing = self._begun("probe", *arguments)
        faults = 0
        while probing.poll() is None:
            time.sleep(every)
            for pid in set(processes_below(self._service.pid)) - self._others if fault else ():
                try:
                    fault(pid)
                    faults += 1
                except ProcessLookupError:
                    pass
        found: Latencies = json.loads(probing.communicate()[0])
        told: dict[str, int] = json.loads(asking.communicate()[0])
        if told.pop("wrong", 0):
            self.wrong.append(f"{title}: an answer without Retry-After, or another status")
        shown = ", ".join(f"{count} × {status}" for status, count in sorted(told.items())) or "none"
        lags = "; ".join(f"{name} {median:.1f}, {late:.1f}" for name, (median, late) in found.items())
        self.table.add(f"{title}{f': {faults} times' if faults else ''}", f"their answers: {shown}", lags)
        late = ", ".join(f"{name} {found[name][1]:.1f} ms" for name in ("/livez", DOCUMENT))
        self.figures.append(f"{title}: p99 {late}; the machine wakes up {found['machine'][1]:.1f} ms late")
        return found

    def _judge(self, title: str, found: Latencies, well: Latencies) -> None:
        for target in TARGETS:
            slower = found[target][1] - well[target][1]
            machine = max(0.0, found["machine"][1] - well["machine"][1])
            if slower - machine > SLOWER_MAX:
                self.wrong.append(f"{title}: {target} is {slower:.1f} ms slower (p99)")

    @staticmethod
    def _begun(what: str, *arguments: str, nice: int = 0) -> subprocess.Popen[str]:
        command = ["nice", "-n", str(nice), sys.executable, __file__, "--as", what, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _is_warm(self) -> bool:
        is_there = self._service.get(DOCUMENT)[0] == 200
        return is_there and len(processes_below(self._service.pid)) >= 4

    def _searches(self) -> bool:
        return self._service.get("/openapi/search?q=replicas")[0] == 200


def processes_below(pid: int) -> list[int]:
    """All that a process started, by whichever thread, and what those did."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        found += [each for child in map(int, children) for each in (child, *processes_below(child))]
    return found


def starve(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_DATA, (1024 * 1024, 1024 * 1024))


FAULTS: tuple[tuple[str, float, Callable[[int], None]], ...] = (
    ("killed (SIGKILL) every second", 1.0, lambda pid: os.kill(pid, signal.SIGKILL)),
    ("stopped (SIGSTOP): it hangs, every 6 s", 6.0, lambda pid: os.kill(pid, signal.SIGSTOP)),
    ("out of memory (RLIMIT_DATA) every 2 s", 2.0, starve),
)


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--write", type=Path, help="the page that shows the last run")
    parser.add_argument("--as", dest="part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        part, port, seconds, *more = options.part
        made = (
            probe(int(port), float(seconds))
            if part == "probe"
            else asyncio.run(clients(int(port), float(seconds), int(more[0])))
        )
        print(json.dumps(made))
        return 0
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "specmux.yaml")
        documents = DATA / "k8s-pairs" / "1.35" / "v3"
        config.write_text(f"listen: {{port: 0}}\nbackends: [{{name: release, directory: '{documents}'}}]\n")
        with specmux("serve", "--config", str(config)) as service:
            service.until_ready()
            run = ReaderFaults(service, seconds=options.seconds, count=options.clients)
            run.run()
    print(run.table)
    if options.write is not None:
        command = f"python tests/stress/stress_reader.py --seconds {options.seconds:g}"
        run.table.write_into(options.write, maker="stress_reader.py", command=command)
    for line in run.figures:
        print(line)
    for line in run.wrong:
        print(f"WRONG: {line}")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

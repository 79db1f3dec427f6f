"""Every body that leaves while TLS handshakes fail, workers are killed and documents change: is it right?

    python tests/stress/stress_handshakes.py [--bodies 100000] [--write docs/benchmarks/stress.md]

Loopback only; ends by itself. The service serves a folder of documents beside 40 backends whose handshakes
hang, are reset, cut or answered with something else. Prints a table in Markdown; exits 1 when a promise was
broken:

* every body of a 200 under a URL with a hash is the document of that hash, by its SHA-512;
* no connection breaks, no memory file is lost, and the service ends with code 0 and without a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.failed_handshakes import FAILURES, handshakes_that
from running.process import Process, specmux, write_documents
from stress.findings_table import FindingsTable
from stress.service_world import documents
from stress.stress_reader import processes_below

BACKENDS = 40
CLIENTS = 6
CHURN = 0.3
"""Seconds between two changes of a document."""
KILL = 5.0
"""Seconds between two kills of a worker."""
LOST = "specmux_body_files_lost_total"
FAILED = "specmux_backend_failures_total"
POLLING = {"interval": 1, "backoff_min": 0.2, "backoff_max": 0.3, "connect_timeout": 0.2}


class HashedBodies:
    """One run. ``table`` is what it found, ``wrong`` what broke a promise."""

    def __init__(self, folder: Path, bodies: int) -> None:
        self._folder = folder
        self._left = bodies
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.answers: Counter[str] = Counter()
        self.changes = self.kills = 0
        self.table = FindingsTable()
        self.wrong: list[str] = []

    def run(self) -> None:
        originals = documents()
        folder = write_documents(self._folder / "documents", originals)
        with contextlib.ExitStack() as stack:
            ports = [stack.enter_context(handshakes_that(failure)) for failure in FAILURES]
            backends = [{"name": "files", "kind": "directory", "directory": str(folder)}]
            backends += [_unreachable(number, ports) for number in range(BACKENDS)]
            config = self._folder / "specmux.yaml"
            settings = {"listen": {"port": 0}, "polling": POLLING, "backends": backends}
            config.write_text(json.dumps(settings))
            service = stack.enter_context(specmux("serve", "--config", str(config)))
            service.until(lambda: len(_root(service)) == len(originals), "all documents")
            began = time.monotonic()
            self._all_at_once(service, folder, originals)
            self._judge(service, time.monotonic() - began)

    def _all_at_once(self, service: Process, folder: Path, originals: dict[str, bytes]) -> None:
        beside = [
            threading.Thread(target=self._change, args=(folder, originals)),
            threading.Thread(target=self._kill, args=(service,)),
        ]
        clients = [threading.Thread(target=self._read, args=(service, seed)) for seed in range(CLIENTS)]
        for each in (*beside, *clients):
            each.start()
        for each in clients:
            each.join()
        self._is_over.set()
        for each in beside:
            each.join()

    def _change(self, folder: Path, originals: dict[str, bytes]) -> None:
        chance = random.Random(1)
        while not self._is_over.wait(CHURN):
            key = chance.choice(sorted(originals))
            tree = orjson.loads(originals[key])
            tree["info"]["version"] = f"changed {self.changes}"
            self.changes += 1
            path = folder / f"{key}.json"
            new = path.with_suffix(".new")
            new.write_bytes(orjson.dumps(tree))
            new.replace(path)

    def _kill(self, service: Process) -> None:
        chance = random.Random(2)
        while not self._is_over.wait(KILL):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, IndexError):
                os.kill(chance.choice(_workers(service.pid)), signal.SIGKILL)
                self.kills += 1

    def _read(self, service: Process, seed: int) -> None:
        chance = random.Random(seed)
        port = service.port
        while self._left > 0 and service.is_running:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                for _ in range(chance.randrange(1, 200)):
                    self._ask_for_some(connection, chance)
            except (OSError, http.client.HTTPException) as error:
                self._note(f"a connection broke: {type(error).__name__}: {error}")
            finally:
                connection.close()

    def _ask_for_some(self, connection: http.client.HTTPConnection, chance: random.Random) -> None:
        _, _, root = _get(connection, "/openapi/v3")
        urls = sorted(item["serverRelativeURL"] for item in orjson.loads(root)["paths"].values())
        for _ in range(40):
            target = chance.choice(urls)
            status, location, body = _get(connection, target)
            if status == 301:
                target = target.partition("?")[0] + location
                status, _, body = _get(connection, target)
            self._check(target, status, body)
            if self._left <= 0:
                return

    def _check(self, target: str, status: int, body: bytes) -> None:
        with self._lock:
            self.answers[str(status)] += 1
            self._left -= status == 200
        (asked,) = parse_qs(urlsplit(target).query)["hash"]
        if status == 200 and hashlib.sha512(body).hexdigest().upper() != asked:
            self._note(f"{target[:80]}: {len(body)} bytes of another document")
        elif status not in (200, 301, 404, 503):  # a document can change between the root and the answer
            self._note(f"{target[:80]}: {status}")

    def _note(self, what: str) -> None:
        with self._lock:
            if len(self.wrong) < 50:
                self.wrong.append(what)

    def _judge(self, service: Process, seconds: float) -> None:
        metrics = service.get("/metrics")[2].decode()
        counted = {name: _counted(metrics, name) for name in (LOST, FAILED)}
        code = service.stop()
        tracebacks = service.output.count("Traceback") + service.output.count("Bad file descriptor")
        statuses = ", ".join(f"{count:,} × {status}" for status, count in sorted(self.answers.items()))
        self.table.add(
            f"documents by hash, {seconds:.0f} s",
            f"{CLIENTS} clients: {statuses}",
            f"{len(self.wrong)} wrong",
        )
        self.table.add(
            "failed looks at 40 backends", f"{counted[FAILED]:,}", f"{counted[LOST]} memory files lost"
        )
        self.table.add("changed documents, killed processes", f"{self.changes}, {self.kills}", "as above")
        self.table.add("end after all of this", "SIGTERM", f"code {code}, {tracebacks} tracebacks")
        if counted[LOST] or code or tracebacks:
            self._note(f"{counted[LOST]} memory files lost, code {code}, {tracebacks} tracebacks")


def _unreachable(number: int, ports: list[int]) -> dict[str, object]:
    url = f"https://127.0.0.1:{ports[number % len(ports)]}"
    return {"name": f"unreachable-{number}", "url": url, "tls": {"insecure_skip_verify": True}}


def _workers(pid: int) -> list[int]:
    """Workers and the server that forks them; not Python's tracker, which complains at length."""
    return [
        each
        for each in processes_below(pid)
        if b"resource_tracker" not in Path(f"/proc/{each}/cmdline").read_bytes()
    ]


def _root(service: Process) -> dict[str, object]:
    """Paths that are published; none before there are any."""
    status, _, body = service.get("/openapi/v3")
    return orjson.loads(body)["paths"] if status == 200 else {}


def _get(connection: http.client.HTTPConnection, target: str) -> tuple[int, str, bytes]:
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.headers.get("Location", ""), answer.read()


def _counted(metrics: str, name: str) -> int:
    found = re.findall(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", metrics, re.MULTILINE)
    return int(sum(map(float, found)))


def stress(bodies: int) -> HashedBodies:
    with tempfile.TemporaryDirectory() as folder:
        run = HashedBodies(Path(folder), bodies)
        run.run()
    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bodies", type=int, default=100_000)
    parser.add_argument("--write", type=Path, help="the page that shows the last run")
    options = parser.parse_args()
    run = stress(options.bodies)
    print(run.table)
    if options.write is not None:
        command = f"python tests/stress/stress_handshakes.py --bodies {options.bodies}"
        run.table.write_into(options.write, maker="stress_handshakes.py", command=command)
    for line in run.wrong:
        print(f"WRONG: {line}")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

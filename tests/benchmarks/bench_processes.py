"""What ``serve --processes 2`` gives over one process: requests, and memory.

Run on a machine with two cores, after ``apt-get install wrk``::

    .venv/bin/python tests/benchmarks/bench_processes.py --directory ../shared/data/k8s-pairs/1.35/v3

wrk takes a part of the same cores, so requests per second say little. Compared is what the processes could
answer if each had a core: requests by the processor time of the busiest, which includes passing connections
on. Short rounds of both, by turns; medians. Memory is the proportional set size of the service and of all its
children, after the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from serving_servers import Server, descendants, proportional, specmux

from shared_data import DATA

CORES = "0,1"
CONNECTIONS = 32
"""For each process: with more, one turn of the event loop answers more, at less cost each."""
WARM = 2
"""Seconds until connections are shared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=DATA / "k8s-pairs" / "1.35" / "v3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    options = parser.parse_args()
    if shutil.which("wrk") is None or not options.directory.is_dir():
        print("not measured: no wrk here, or no documents (--directory)")
        return
    able: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        servers = {}
        for count in (1, 2):
            started = specmux(options.directory, "--processes", str(count), expected=30, cores=CORES)
            servers[count] = stack.enter_context(started)
        _, fields, root = servers[1].get("/openapi/v3")
        url = orjson.loads(root)["paths"]["api/v1"]["serverRelativeURL"]
        size = len(servers[1].get(url)[2]) / 1e6
        rows = {
            "root": ["/openapi/v3"],
            "304": ["/openapi/v3", "-H", f"If-None-Match: {fields['etag']}"],
            f"document of {size:.2f} MB": [url],
        }
        for _ in range(options.rounds):
            for name, request in rows.items():
                for count, server in servers.items():
                    found = capacity(server, request, options.seconds, connections=CONNECTIONS * count)
                    able[name, count].append(found)
        print("| requests per second of processor time | one process | two | ratio |\n|---|---|---|---|")
        for name in rows:
            one, two = (statistics.median(able[name, count]) for count in (1, 2))
            print(f"| {name} | {one:,.0f} | {two:,.0f} | {two / one:.2f} |")
        one, two = (memory(server) for server in servers.values())
        print(f"| memory, MiB | {one:.0f} | {two:.0f} | {two / one:.2f} |")


def capacity(server: Server, request: list[str], seconds: int, *, connections: int) -> float:
    """Requests per second of processor time of the process that used most, once connections are shared."""
    target, *fields = request
    url = f"http://127.0.0.1:{server.port}{target}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{WARM + seconds + 1}", *fields, url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as wrk:
        time.sleep(WARM)
        processes = [replace(server, pid=pid) for pid in (server.pid, *descendants(server.pid))]
        answered, before = requests(server), [each.cpu() for each in processes]
        time.sleep(seconds)
        answered, after = requests(server) - answered, [each.cpu() for each in processes]
        assert wrk.wait() == 0
    return answered / max(end - start for start, end in zip(before, after, strict=True)) * 1e9


def requests(server: Server) -> float:
    """Requests answered; acceptors report theirs each second, so whole seconds lie between two."""
    text = server.get("/metrics")[2].decode()
    return sum(
        map(float, re.findall(r"^specmux_request_duration_seconds_count\{.* (\S+)$", text, re.MULTILINE))
    )


def memory(server: Server) -> float:
    return sum(proportional(pid) for pid in (server.pid, *descendants(server.pid)))


if __name__ == "__main__":
    main()

"""The first visitor of the page after a start: how long the home page and a kind's page take.

    .venv/bin/python tests/benchmarks/bench_first_visitor.py [--rounds 3]

A service over the documents of 1.35 and its custom resources. Visitors come at the moment of readiness, or
some seconds later. "busy" is by how much this machine stretches a second of processor time: only figures
near 1 are those of a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

import orjson  # noqa: E402

from data.explained_documents import release  # noqa: E402
from running.process import Process, specmux, write_documents  # noqa: E402
from running.processor_time import cpu_of  # noqa: E402
from shared_data import DATA  # noqa: E402

PAGES = {"home": "/openapi/ui/", "Pod": "/openapi/ui/kind/api/v1/Pod"}
AFTER = (0.0, 10.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = write_documents(
            Path(name), {key: orjson.dumps(document) for key, document in release().items()}
        )
        for after in AFTER:
            for page, target in PAGES.items():
                visits = [visited(folder, target, after) for _ in range(options.rounds)]
                waited, used, busy = (statistics.median(each) for each in zip(*visits, strict=True))
                print(
                    f"{page}, {after:.0f} s after readiness: "
                    f"{waited:.2f} s, CPU {used:.2f} s, busy {busy:.1f}"
                )


def visited(folder: Path, target: str, after: float) -> tuple[float, float, float]:
    """Seconds until the first visitor has the page, those of processor time, and how busy the machine was."""
    with specmux("serve", "--directory", str(folder), "--listen-port", "0") as service:
        while not is_ready(service):
            time.sleep(0.05)
        time.sleep(after)
        started, before = time.monotonic(), cpu_of(service.pid)
        if service.get(target)[0] != 200:
            sys.exit(f"{target}: no page")
        return time.monotonic() - started, cpu_of(service.pid) - before, busy()


def is_ready(service: Process) -> bool:
    try:
        return service.get("/readyz")[0] == 200
    except AssertionError:  # it does not listen yet, on a machine that is very busy
        return False


def busy() -> float:
    """Wall time of a tenth of a second of processor time, over that."""
    started, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.1:
        os.getpid()
    return (time.monotonic() - started) / 0.1


if __name__ == "__main__":
    main()

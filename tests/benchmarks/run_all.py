"""Runs every benchmark, one after the other, each in a process of its own: what ``make bench`` does.

They say themselves what they miss on this machine (nginx and wrk from Debian, Go, npm), and go on.
Names on the command line choose some: ``run_all.py serving store``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    benchmarks = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    chosen = sys.argv[1:] or list(benchmarks)
    unknown = [name for name in chosen if name not in benchmarks]
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    failed = []
    for name in chosen:
        print(f"\n== {name} ==", flush=True)
        if subprocess.run([sys.executable, benchmarks[name]], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

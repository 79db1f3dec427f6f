"""Runs every benchmark, one after the other, each in a process of its own: what ``make bench`` does.

They say themselves what they miss on this machine (nginx and wrk from Debian, Go, npm), and go on. Without
the reference data they run on documents that are made for them, of a size that is said.
Names on the command line choose some: ``run_all.py serving store``. Last, rows that got worse than those of
docs/benchmarks/ are named (``recorded.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from figures import FOLDER  # noqa: E402
from made_documents import write_documents  # noqa: E402
from plots import draw_kept  # noqa: E402
from recorded_figures import print_report  # noqa: E402

from shared_data import DATA  # noqa: E402


def main() -> int:
    benchmarks = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    chosen = sys.argv[1:] or list(benchmarks)
    unknown = [name for name in chosen if name not in benchmarks]
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    for name in chosen:
        (FOLDER / f"{name}.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="specmux-bench-") as folder:
        failed = run([benchmarks[name] for name in chosen], data_for(Path(folder)))
    print(f"\nplots, each beside its figures: {', '.join(map(str, draw_kept())) or 'none'}")
    if DATA.is_dir():
        print_report()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


def data_for(folder: Path) -> dict[str, str]:
    """The environment of a benchmark: with the reference data, else with documents that are made here."""
    if DATA.is_dir():
        return dict(os.environ)
    print(f"no reference data beside the checkout: {write_documents(folder)}", flush=True)
    print(
        "What is measured on them is not comparable with docs/benchmarks/, nor meant for its bars.",
        flush=True,
    )
    return {**os.environ, "SPECMUX_SHARED": str(folder), "SPECMUX_MADE_DOCUMENTS": "1"}


def run(benchmarks: list[Path], environment: dict[str, str]) -> list[str]:
    """The names of those that failed."""
    failed = []
    for path in benchmarks:
        name = path.stem.removeprefix("bench_")
        print(f"\n== {name} ==", flush=True)
        if subprocess.run([sys.executable, path], env=environment, check=False).returncode:
            failed.append(name)
    return failed


if __name__ == "__main__":
    sys.exit(main())

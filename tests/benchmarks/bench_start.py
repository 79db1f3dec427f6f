"""What answers without work take, in processor time and on the clock: version, help and completion.

    .venv/bin/python tests/benchmarks/bench_start.py [--rounds 15]

The interpreter with nothing imported, and kubectl where there is one, are beside them.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

from figures import keep

BAR = 0.15
"""Seconds of processor time."""

COMPLETION = {"_SPECMUX_COMPLETE": "bash_complete", "COMP_WORDS": "specmux c", "COMP_CWORD": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    ours = [sys.executable, "-m", "specmux_aggregator.cli"]
    kubectl = shutil.which("kubectl")
    commands: dict[str, tuple[list[str], dict[str, str], float | None]] = {
        "python -c pass": ([sys.executable, "-c", "pass"], {}, None),
        "specmux --version": ([*ours, "--version"], {}, BAR),
        "specmux --help": ([*ours, "--help"], {}, BAR),
        "specmux c, completed": (ours, COMPLETION, BAR),
        "specmux serve --help": ([*ours, "serve", "--help"], {}, None),
    }
    if kubectl is not None:
        commands["kubectl version --client"] = ([kubectl, "version", "--client"], {}, None)
    print(f"{'command':<26} {'CPU ms':>7} {'clock ms':>9} {'bar':>5}")
    kept = {}
    for name, (command, environment, bar) in commands.items():
        cpu, clock = measured(command, environment, rounds)
        print(
            f"{name:<26} {1000 * cpu:7.0f} {1000 * clock:9.0f} {'' if bar is None else f'{1000 * bar:5.0f}'}"
        )
        kept[name] = (1000 * cpu,)
    keep("start", kept)


def measured(command: list[str], environment: dict[str, str], rounds: int) -> tuple[float, float]:
    """Median processor time and time on the clock of one process, in seconds."""
    cpu, clock = [], []
    for _ in range(rounds):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(
            command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        clock.append(time.monotonic() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(cpu), statistics.median(clock)


if __name__ == "__main__":
    main()

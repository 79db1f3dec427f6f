"""Random pairs of schemas compared, and judged by objects: what breaks is said, and little else is.

    python tests/stress/stress_diff.py [--pairs 3000] [--tries 40] [--seed 1]

Each pair is a definition and an edit of it. Objects that lie around its bounds are judged before and after by
the project's validator, and, where Go is installed, by apiextensions-apiserver (tests/benchmarks/go). Prints
what was missed, and how often a break was said that no object shows; exits 1 for what was missed, and for
more than NOISE_MAX of the latter. Random branches may contradict each other, so that no valid object has
anything at the place: such pairs are counted apart.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson

from data.schema_pairs import UNDECIDED, Outcome, Schemas, outcome, widget
from specmux_tools.differences.rules import Impact
from stress.findings_table import FindingsTable

NOISE_MAX = 0.05
JUDGE = Path(__file__).resolve().parents[1] / "benchmarks" / "go" / "apiextensions"
TAKEN_MIN = 5
"""Objects that a schema takes, below which nothing is said of noise: it may take none."""


class Run:
    """What came of all pairs."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.noise: Counter[str] = Counter()
        self.judged: list[tuple[dict[str, Any], dict[str, Any], Outcome]] = []

    def pair(self, chance: Random, schemas: Schemas, tries: int) -> None:
        old, new = schemas.pair()
        found = outcome(chance, old, new, tries)
        if found is None:
            self.counts["not structural"] += 1
            return
        self.counts["pairs"] += 1
        if found.refused:
            self._missed(old, new, found, found.refused[0])
        elif found.writers is Impact.BREAKING and found.taken >= TAKEN_MIN:
            if found.is_reached:
                self.counts["breaking, no object found"] += 1
                self.noise[", ".join(sorted(f"{each.id} {each.what or ''}" for each in found.places))] += 1
            else:
                self.counts["breaking where no object has anything"] += 1
        self.counts["said breaking"] += found.writers is Impact.BREAKING
        if found.fresh:
            self.counts["new objects possible"] += 1
            if not found.places:
                self.wrong.append(f"readers: {orjson.dumps([old, new, found.fresh[0]]).decode()}")
        self.judged.append((old, new, found))

    def _missed(self, old: Any, new: Any, found: Outcome, value: Any) -> None:
        self.counts["old objects refused"] += 1
        if found.writers is Impact.BREAKING:
            return
        if found.writers is Impact.WARNING and found.ids & UNDECIDED:
            self.counts["of these a warning by contract"] += 1
            return
        self.wrong.append(f"writers: {orjson.dumps([old, new, value]).decode()}")

    @property
    def share_of_noise(self) -> float:
        return self.counts["breaking, no object found"] / max(self.counts["said breaking"], 1)

    def ask_kubernetes(self) -> str:
        """Judges of the found objects; returns what came of it."""
        if shutil.which("go") is None:
            return "not asked: Go is not installed"
        with tempfile.TemporaryDirectory() as folder:
            binary = Path(folder) / "judge"
            built = subprocess.run(
                ["go", "build", "-o", str(binary), "."],
                cwd=JUDGE,
                capture_output=True,
                text=True,
                check=False,
            )
            if built.returncode:
                return f"not asked: {built.stderr.strip().splitlines()[-1]}"
            asked = [
                (old, new, found, value)
                for old, new, found in self.judged
                for value in (found.refused[:1] + found.fresh[:1] + found.taken_values[:2])
            ]
            lines = b"".join(
                orjson.dumps({"schema": _root(schema), "object": widget(value)}) + b"\n"
                for old, new, _, value in asked
                for schema in (old, new)
            )
            done = subprocess.run([str(binary)], input=lines, capture_output=True, check=True)
        answers = [orjson.loads(line) for line in done.stdout.splitlines()]
        verdicts = [not any(answer.values()) for answer in answers]
        breaks = 0
        for index, (old, new, found, value) in enumerate(asked):
            if verdicts[2 * index] and not verdicts[2 * index + 1]:
                breaks += 1
                self._missed(old, new, found, value)
        return f"{len(asked):,} objects under both schemas, {breaks:,} taken before and refused after"


def _root(spec: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": spec}}


def stress(pairs: int, tries: int, seed: int) -> tuple[Run, FindingsTable]:
    chance, run, table = Random(seed), Run(), FindingsTable()
    schemas = Schemas(chance)
    started = time.process_time()
    while run.counts["pairs"] < pairs:
        run.pair(chance, schemas, tries)
    seconds = time.process_time() - started
    table.add("pairs of schemas", f"{run.counts['pairs']:,}, {seconds:.0f} s of CPU", f"seed {seed}")
    counts = dict(run.counts)
    table.add(
        "old objects refused", f"{counts.get('old objects refused', 0):,} pairs", f"{len(run.wrong)} missed"
    )
    kubernetes = run.ask_kubernetes()
    table.add("asked of apiextensions-apiserver", kubernetes, f"{len(run.wrong)} missed")
    silent = counts.get("breaking, no object found", 0)
    said = f"{silent:,} of {counts.get('said breaking', 0):,} said breaking"
    table.add("no object found that breaks", said, f"{run.share_of_noise:.1%}")
    unreached = counts.get("breaking where no object has anything", 0)
    table.add("places that no valid object has", f"{unreached:,} pairs", "nothing is said of them")
    return run, table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run, table = stress(arguments.pairs, arguments.tries, arguments.seed)
    print(table)
    for ids, count in run.noise.most_common(20):
        print(f"noise: {count} {ids}")
    for wrong in run.wrong[:20]:
        print(f"MISSED: {wrong}")
    sys.exit(1 if run.wrong or run.share_of_noise > NOISE_MAX else 0)


if __name__ == "__main__":
    main()

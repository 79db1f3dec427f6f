"""Typed models: the recipes of docs/generators.md, run as they stand there, for every group-version.

    .venv/bin/python tests/benchmarks/bench_generators.py [--only apps_v1] [--recipe pydantic]

Tools are found or installed as in the tests (tests/running/generators.py); a recipe without its tool is
counted. With pydantic's models the recorded objects of the reference data make the round trip.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from running.generators import (  # noqa: E402
    Recipe,
    missing_tool,
    recipes,
    round_trip,
    run,
    write_bundles,
)
from shared_data import DATA, GOLDEN  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="one group-version, such as apps_v1")
    parser.add_argument("--recipe", default="", help="recipes whose title has this")
    parser.add_argument("--layout", choices=["models", "partial-models"], default="models")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return 0
    chosen = [each for each in recipes() if options.recipe in each.title]
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stems = write_bundles(folder, DATA / "k8s-pairs" / "1.35" / "v3")
        for recipe in chosen:
            if missing := missing_tool(recipe):
                print(f"{recipe.title:<58} skipped: no {missing}")
                skipped += 1
                continue
            own = [each for each in stems if options.only in (None, each)]
            failures = measured(recipe, folder, own, options)
            failed += failures
            if "pydantic" in recipe.title and not failures and options.only is None:
                recorded = GOLDEN / "json-schema" / "verdicts-typed.jsonl.gz"
                counts = round_trip(folder, recorded, folder / options.layout)
                print("; ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    print(f"{len(chosen) - skipped} of {len(chosen)} recipes run")
    return 1 if failed else 0


def measured(recipe: Recipe, folder: Path, stems: list[str], options: argparse.Namespace) -> int:
    """How many group-versions failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = {stem: run(recipe, recipe.script(stem, options.layout), folder) for stem in stems}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    failed = {stem: text for stem, text in said.items() if text}
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{recipe.title:<58} {len(stems) - len(failed)} of {len(stems)}, {used:.0f} s CPU", flush=True)
    for stem, text in failed.items():
        print(f"  {stem}: {text}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

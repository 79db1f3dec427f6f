"""Typed models: the recipes of docs/generators.md, run as they stand there, for every group-version.

    .venv/bin/python tests/benchmarks/bench_generators.py [--only apps_v1] [--recipe pydantic]

Tools are those on PATH (``pip install datamodel-code-generator``, ``npm install json-schema-to-typescript
openapi-typescript quicktype typescript@5``, ``go install cuelang.org/go/cmd/cue@latest``); the jar of
openapi-generator is where ``OPENAPI_GENERATOR_JAR`` says. A recipe whose tool is not there is counted. With
pydantic's models the recorded objects of the reference data make the round trip.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from shared_data import DATA, GOLDEN  # noqa: E402

PAGE = HERE.parents[2] / "docs" / "generators.md"
SPECMUX = Path(sys.executable).with_name("specmux")
EXAMPLE = "apps_v1"
JAR = "openapi-generator-cli.jar"

ROUND_TRIP = """
import collections, gzip, importlib, json, re, sys
def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    return [plain(each) for each in value if each is not None] if isinstance(value, list) else value
count = collections.Counter()
for line in gzip.open(sys.argv[1], "rt"):
    case = json.loads(line)
    key, kind, *_ = case["id"].split("|")
    _, *group, version = key.split("/")
    module = importlib.import_module(re.sub("[^a-z0-9]", "_", f"{(group or ['core'])[0]}_{version}"))
    count["recorded"] += 1
    count["taken by Kubernetes"] += case["accept"]
    if not case["accept"]:
        continue
    value = plain(case["object"])
    try:
        made = getattr(module, kind).model_validate(value)
    except ValueError as error:
        count[f"refused: {error.errors()[0]['type']}"] += 1
        continue
    same = made.model_dump(mode="json", by_alias=True, exclude_unset=True) == value
    count["round trip" if same else "differ"] += 1
print("; ".join(f"{name} {number}" for name, number in count.items()))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="one group-version, such as apps_v1")
    parser.add_argument("--recipe", default="", help="recipes whose title has this")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: wants the reference data")
        return 0
    recipes = [each for each in recipes_of(PAGE.read_text()) if options.recipe in each[0]]
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        for title, lines in recipes:
            if missing := missing_tool(lines):
                print(f"{title:<58} skipped: no {missing}")
                skipped += 1
                continue
            failed += run_recipe(Path(folder), title, lines, options.only)
    print(f"{len(recipes) - skipped} of {len(recipes)} recipes run")
    return 1 if failed else 0


def recipes_of(page: str) -> list[tuple[str, str]]:
    """The title and the lines of each."""
    found = re.findall(r"^## (.+?)\n+```sh\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    return [(title, lines) for title, lines in found]


def write_models(folder: Path) -> None:
    documents = DATA / "k8s-pairs" / "1.35" / "v3"
    command = [SPECMUX, "schemas", folder, "--layout", "models", "--directory", documents]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    jar = os.environ.get("OPENAPI_GENERATOR_JAR")
    if jar is not None:
        (folder / JAR).symlink_to(Path(jar).resolve())


def missing_tool(lines: str) -> str | None:
    words = [line.split()[0] for line in lines.splitlines() if line[:1].strip()]
    if JAR in lines and "OPENAPI_GENERATOR_JAR" not in os.environ:
        return JAR
    return next((word for word in words if shutil.which(word) is None), None)


def run_recipe(folder: Path, title: str, lines: str, only: str | None) -> int:
    """How many group-versions failed."""
    stems = sorted(path.name.removesuffix(".openapi.json") for path in folder.glob("models/*.openapi.json"))
    chosen = [stem for stem in stems if only in (None, stem)]
    failed: list[str] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for stem in chosen:
        module = re.sub("[^a-z0-9]", "_", stem)
        # Files are the group-version's own; the models of Python have to be importable by name.
        script = re.sub(rf"(?<!models/)\b{EXAMPLE}\b", module, lines).replace(EXAMPLE, stem)
        if stem != EXAMPLE:
            script = re.sub(r"; apps_v1\.Deployment.*?(?=')|; \w+\.Deployment.*?(?=')", "", script)
        done = subprocess.run(
            ["bash", "-euc", script], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            failed.append(f"{stem}: {(done.stderr or done.stdout).strip()[-400:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{title:<58} {len(chosen) - len(failed)} of {len(chosen)}, {used:.0f} s CPU", flush=True)
    for each in failed:
        print(f"  {each}")
    if "pydantic" in title and not failed and only is None:
        recorded = str(GOLDEN / "json-schema" / "verdicts-typed.jsonl.gz")
        subprocess.run(["python", "-c", ROUND_TRIP, recorded], cwd=folder, check=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

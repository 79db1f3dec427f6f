"""What other tools answer to the vectors.

    .venv/bin/python tests/benchmarks/bench_vectors.py

Prints the table of docs/comparison.md: for each set how many answers of a tool are those of Kubernetes' code.
The tools come from Go modules in fixed versions; one that cannot be had is named. ``bench_vectors.py NAME``
answers as this tool, for ``specmux conformance --vectors``. kubeconform has the JSON Schemas that ``specmux
schemas`` writes, kubectl-validate the definitions, and its own documents for kinds of Kubernetes. Each custom
resource has a group of its own, so that one run of a tool judges them all.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve()
ROOT: Final = HERE.parents[2]
sys.path.append(str(HERE.parents[1]))

from running.schema_clients import CACHE, go_program, kubeconform, tried  # noqa: E402

KUBECTL_VALIDATE: Final = "sigs.k8s.io/kubectl-validate@v0.0.4"
SPECMUX: Final = str(Path(sys.executable).with_name("specmux"))
TOOLS: Final = ("specmux", "kubeconform", "kubectl-validate", "openapiconv")
TITLES: Final = ("specmux", "kubeconform 0.8.0", "kubectl-validate 0.0.4", "openapiconv")
SHOWN: Final = "[bench_vectors.py](../tests/benchmarks/bench_vectors.py)"
LIMIT: Final = 1800.0
"""Seconds for one run of a tool."""


def main() -> None:
    if len(sys.argv) > 1:
        cases = [json.loads(line) for line in sys.stdin]
        for id, answer in answers(sys.argv[1], cases):
            print(json.dumps({"id": id, **answer}))
        return
    tools = {name: command(name) for name in TOOLS}
    told = {name: report(each) for name, each in tools.items() if each is not None}
    titles = [title for name, title in zip(TOOLS, TITLES, strict=True) if name in told]
    print(f"| cases | {' | '.join(titles)} | shown by |\n|---|{'---|' * len(titles)}---|")
    for name, first in told["specmux"].items():
        rows = [outcome(each[name]) for each in told.values()]
        print(f"| {name}: {first['cases']:,} | {' | '.join(rows)} | {SHOWN} |")
    if missing := [name for name, each in tools.items() if each is None]:
        print(f"not measured, since it cannot be had here: {', '.join(missing)}")


def outcome(told: Mapping[str, int]) -> str:
    answered = told["cases"] - told["unanswered"]
    return (
        f"{told['equal']:,}"
        if answered == told["cases"]
        else f"{told['equal']:,} of {answered:,}"
        if answered
        else "–"
    )


def command(name: str) -> str | None:
    match name:
        case "specmux":
            return shlex.join([sys.executable, str(ROOT / "tests/vectors/specmux_answers.py")])
        case "openapiconv":
            program = CACHE / "bin" / "openapiconv"
            if not program.exists():
                tried(["go", "build", "-C", str(HERE.parent / "go"), "-o", str(program), "./convert"])
            return str(program) if program.exists() else None
    found = kubeconform() if name == "kubeconform" else go_program(KUBECTL_VALIDATE)
    return None if found is None else shlex.join([sys.executable, str(HERE), name])


def report(command: str) -> dict[str, dict[str, int]]:
    asked = [SPECMUX, "conformance", "--vectors", command, str(ROOT / "vectors"), "-o", "json"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return {each["name"]: each for each in json.loads(done.stdout)["sets"]}


def answers(name: str, cases: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of a tool that judges objects in files: creations, as "object" has them."""
    for task in ("validate", "decode"):
        judged = [
            each
            for each in cases
            if each["task"] == task and "object" in each["input"] and "old" not in each["input"]
        ]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "definitions").mkdir()
            for number, each in enumerate(judged):
                write_case(folder, number, each)
            refusals = kubeconform_refusals if name == "kubeconform" else validate_refusals
            refused = dict(refusals(folder, is_strict=task == "decode")) if judged else {}
        for number, each in enumerate(judged):
            if (is_refused := refused.get(f"{number}.json")) is not None:
                yield each["id"], {"verdict": "invalid" if is_refused else "valid"}


def write_case(folder: Path, number: int, case: dict[str, Any]) -> None:
    asked = case["input"]
    value = asked["object"]
    if "schema" in asked:
        value = {**value, "apiVersion": f"g{number}.example.com/v1"}
        write(
            folder / "definitions" / f"{number}.yaml", definition(asked["schema"], f"g{number}.example.com")
        )
    write(folder / "objects" / f"{number}.json", value)


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


def definition(schema: Any, group: str) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"widgets.{group}"}, "spec": spec}


def kubeconform_refusals(folder: Path, *, is_strict: bool) -> Iterator[tuple[str, bool]]:
    """``is_strict``: unknown fields are refused, which an apiserver prunes otherwise."""
    words = [str(kubeconform()), "-output", "json", "-verbose", *["-strict"] * is_strict]
    sources = {"own": ["--release", "1.35"], "custom": ["--directory", str(folder / "definitions")]}
    for name, source in sources.items():
        asked = [
            SPECMUX,
            "schemas",
            *source,
            "--layout",
            "standalone",
            "--allow-left-out",
            str(folder / name),
        ]
        subprocess.run(asked, check=False, timeout=LIMIT, capture_output=True)
        words += ["-schema-location", str(folder / name)]
    done = subprocess.run(
        [*words, str(folder / "objects")], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    for each in json.loads(done.stdout)["resources"]:
        if each["status"] != "statusError" or "could not find schema" not in each["msg"]:
            yield Path(each["filename"]).name, each["status"] != "statusValid"


def validate_refusals(folder: Path, *, is_strict: bool) -> Iterator[tuple[str, bool]]:
    """Unknown fields are refused always, ``is_strict`` or not."""
    words = [str(go_program(KUBECTL_VALIDATE)), "--local-crds", str(folder / "definitions"), "-o", "json"]
    done = subprocess.run(
        [*words, str(folder / "objects")], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    for path, told in json.loads(done.stdout).items():
        first: Iterable[Any] = told if isinstance(told, list) else [told]
        yield Path(path).name, any(each.get("status") != "Success" for each in first)


if __name__ == "__main__":
    main()

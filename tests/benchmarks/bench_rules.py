"""What rules of custom resources (CEL) cost: compiling them, and evaluating them.

    .venv/bin/python tests/benchmarks/bench_rules.py [--rounds 5]

CPU time of this process, medians. The definition is the largest of ``data/crds`` with rules; they are
compiled as for the first object of its kind, with all of their types.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

import orjson  # noqa: E402

from shared_data import DATA, read  # noqa: E402
from specmux_converters.yaml import parse_yaml_stream  # noqa: E402
from specmux_tools.validation.rules.checking import check_rules  # noqa: E402
from specmux_tools.validation.rules.compiled_rule import RuleCompiler  # noqa: E402
from specmux_tools.validation.rules.rule_faults import compile_rules  # noqa: E402
from specmux_tools.validation.rules.rule_tree import RuleNode, rule_tree  # noqa: E402

LARGEST = "argoproj.io_workflows.yaml.gz"
RULES = "x-kubernetes-validations"
SMALL = {
    "type": "object",
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    RULES: [
        {"rule": "self.min <= self.max && self.names.all(name, name.startsWith('a') || name.size() > 3)"}
    ],
}
ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
    RULES: [{"rule": "has(self.port) && self.port > 0 && self.name != ''"}],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| rules of custom resources | CPU |\n|---|---|")
    for name, unit, measured in rows():
        seconds = statistics.median(measured() for _ in range(rounds))
        shown = f"{seconds * 1e6:.0f} µs" if unit == "µs" else f"{seconds * 1e3:.0f} ms"
        print(f"| {name} | {shown} |")


def rows() -> Iterator[tuple[str, str, Callable[[], float]]]:
    yield "a rule over a small object", "µs", lambda: evaluated(SMALL, small(), 2_000)
    items = {"type": "array", "items": ITEM}
    value = [{"name": f"a{index}", "port": index + 1} for index in range(10_000)]
    yield "10,000 items, one rule", "ms", lambda: evaluated(items, value, 1)
    schema = largest()
    if schema is None:
        print("no definitions beside the checkout: compiling is not measured")
        return
    size = len(orjson.dumps(schema)) / 1e6
    yield f"all rules of a definition of {size:.1f} MB, compiled", "ms", lambda: compiled(schema)
    yield (
        "the same, with what an apiserver says of them",
        "ms",
        lambda: timed(lambda: compile_rules(schema, "spec")),
    )


def largest() -> dict[str, Any] | None:
    path = next(iter((DATA / "crds").rglob(LARGEST)), None)
    if path is None:
        return None
    (definition,) = (each for each in parse_yaml_stream(read(path)) if each.get("kind"))
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def small() -> dict[str, Any]:
    return {"min": 1, "max": 2, "names": ["abc", "abcd", "a"]}


def timed(run: Callable[[], Any]) -> float:
    before = time.process_time()
    run()
    return time.process_time() - before


def evaluated(spec: dict[str, Any], value: Any, count: int) -> float:
    tree = rule_tree({"type": "object", "properties": {"spec": spec}}, {})
    compiler = RuleCompiler()
    assert check_rules({"spec": value}, tree, compiler) == []
    return timed(lambda: [check_rules({"spec": value}, tree, compiler) for _ in range(count)]) / count


def compiled(schema: dict[str, Any]) -> float:
    tree = rule_tree(schema, {})
    compiler = RuleCompiler()
    return timed(lambda: [compiler.rules(node) for node in nodes(tree)])


def nodes(node: RuleNode) -> Iterator[RuleNode]:
    yield node
    for each in (*node.properties.values(), node.items, node.additional):
        if each is not None:
            yield from nodes(each)


if __name__ == "__main__":
    main()

"""What it costs to build the documents of CustomResourceDefinitions: first, and after one of them changed.

    .venv/bin/python tests/benchmarks/bench_crds.py [--manifests DIRECTORY] [--rounds 7]

Process CPU time, medians of the rounds. "YAML" is recognise() on the files, "build" is build(), "JSON" is
json() of every document that is new. Of a CRD that is there twice the larger manifest counts. The peer of the
first line is PyYAML's own loader (libyaml), which people use for this, in the same run.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[1]))

from figures import keep  # noqa: E402

from shared_data import DATA, read  # noqa: E402
from specmux_converters.crd import CRDBuild, CRDMemo, build  # noqa: E402
from specmux_converters.document import Document  # noqa: E402
from specmux_converters.errors import ConverterError  # noqa: E402
from specmux_converters.recognise import DocumentKind, recognise  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--manifests", type=Path, default=DATA / "crds")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    texts = [text for text in map(read, sorted(options.manifests.rglob("*.yaml*"))) if has_crds(text)]
    manifests = largest(parsed(texts))
    print(f"{len(manifests)} CRDs, {sum(map(len, texts)) / 1e6:.1f} MB of YAML, {options.rounds} rounds\n")
    report_first(texts, manifests, options.rounds)
    report_changes(manifests, options.rounds)
    report_growth(options.rounds)


def has_crds(text: bytes) -> bool:
    try:
        return recognise(text).kind is DocumentKind.CRDS
    except ConverterError:
        return False


def parsed(texts: Sequence[bytes]) -> list[Document]:
    return [document for text in texts for document in recognise(text).documents]


def largest(manifests: Sequence[Document]) -> list[Document]:
    found: dict[str, Document] = {}
    for manifest in sorted(manifests, key=lambda each: len(orjson.dumps(each))):
        found[manifest["metadata"]["name"]] = manifest
    return list(found.values())


def report_first(texts: Sequence[bytes], manifests: Sequence[Document], rounds: int) -> None:
    reading = median(lambda: parsed(texts), rounds)
    peer = median(lambda: [list(yaml.load_all(text, Loader=Lenient)) for text in texts], max(1, rounds // 3))
    building = median(lambda: build(manifests), rounds)
    built = build(manifests)
    writing = median(lambda: [built.json(key) for key in built.outlines], rounds)
    print("first build, ms")
    print(f"  YAML {reading:7.0f}   (PyYAML's CSafeLoader {peer:.0f}, {peer / reading:.1f} times as much)")
    print(f"  build {building:6.0f}   {len(built.outlines)} documents, {len(built.problems)} problems")
    print(f"  JSON {writing:7.0f}")
    print(f"  all {reading + building + writing:8.0f}\n")
    keep("crds", {"read into objects": (reading, peer)})


def report_changes(manifests: Sequence[Document], rounds: int) -> None:
    """Each CRD changed in turn, as a watch sees it: one new object among the others."""
    memo = CRDMemo()
    before = build(manifests, memo=memo)
    costs: list[tuple[float, str]] = []
    for index, manifest in enumerate(manifests):
        versions = [copy.deepcopy(manifest) for _ in range(min(rounds, 3))]
        spent = []
        for number, changed in enumerate(versions):
            mark(changed, number)
            current = [*manifests[:index], changed, *manifests[index + 1 :]]
            start = time.process_time()
            after = rebuilt(current, before, memo)
            spent.append((time.process_time() - start) * 1000)
            before = after
        costs.append((statistics.median(spent), manifest["metadata"]["name"]))
        before = build(manifests, memo=memo)
    costs.sort()
    print("one CRD changed, ms: all manifests looked at, its group-versions' JSON written")
    for label, place in (("median", 0.5), ("9 in 10", 0.9), ("most", 1.0)):
        cost, name = costs[min(len(costs) - 1, int(place * len(costs)))]
        print(f"  {label:8} {cost:6.1f}   {name}")
    idle = median(lambda: build(manifests, memo=memo), rounds)
    print(f"  nothing  {idle:6.1f}\n")


def mark(manifest: Document, number: int) -> None:
    for version in manifest["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["description"] = f"changed {number}"


def rebuilt(manifests: Sequence[Document], before: CRDBuild, memo: CRDMemo) -> CRDBuild:
    after = build(manifests, memo=memo)
    for key, fingerprint in after.fingerprints.items():
        if before.fingerprints.get(key) != fingerprint:
            after.json(key)
    return after


def report_growth(rounds: int) -> None:
    print("synthetic CRDs, ms for each (build and JSON), in groups of ten")
    for count in (100, 300, 1000):
        manifests = [synthetic(number) for number in range(count)]

        def work(manifests: Sequence[Document] = manifests) -> None:
            built = build(manifests)
            for key in built.outlines:
                built.json(key)

        print(f"  {count:5} {median(work, max(1, rounds // 2)) / count:6.2f}")


def synthetic(number: int) -> Document:
    fields: dict[str, Any] = {
        f"field{index}": {
            "type": "object",
            "description": f"Field {index} of {number}.",
            "properties": {
                "size": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"},
                "names": {"type": "array", "items": {"type": "string", "maxLength": 63}},
            },
        }
        for index in range(60)
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return orjson.loads(
        orjson.dumps(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"kind{number}s.group{number // 10}.example.com"},
                "spec": {
                    "group": f"group{number // 10}.example.com",
                    "names": {"kind": f"Kind{number}", "plural": f"kind{number}s"},
                    "scope": "Namespaced",
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "schema": {"openAPIV3Schema": schema},
                            "subresources": {"status": {}},
                        }
                    ],
                },
            }
        )
    )


class Lenient(yaml.CSafeLoader):
    """With what PyYAML otherwise refuses in these files: a plain ``=``."""


Lenient.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def median(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append((time.process_time() - start) * 1000)
    return statistics.median(spent)


if __name__ == "__main__":
    main()

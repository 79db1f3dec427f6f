"""Writes ``recorded/golden/own-definitions.jsonl.gz``: definitions of our own, what apiextensions-apiserver
makes of them, and what it says to objects of theirs.

    (cd tests/benchmarks/go/crd_documents && go build -o ~/judges/documents-1.37 .)
    .venv/bin/python tests/converters/crd/record_own_definitions.py ~/judges

The folder has ``crd_documents``, ``openapi_v2`` and ``apiextensions`` of tests/benchmarks/go, as
``documents-RELEASE``, ``v2-RELEASE`` and ``objects-1.37``; for 1.34 their go.mod names 0.34.1 of Kubernetes'
modules in place of 0.37.2. A line is a cluster: its definitions, the digests of its documents and of the
definitions that its own kinds are in Swagger 2.0 by release, and objects with the answers to them.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS))

from data.own_definitions import RECORDED, RELEASES, digest  # noqa: E402
from data.schema_pairs import Instances, Schemas  # noqa: E402

Value = dict[str, Any]

ACCEPTED = TESTS / "tools/validation/recorded/definitions.jsonl.gz"
KINDS = (("Widget", "widgets"), ("Bed", "beds"), ("Policy", "policies"), ("Fish", "fish"))
GROUPS = ("example.com", "garden.example.org", "a.b.example.net")
CLUSTERS = 160
OBJECTS = 6


def clusters(random: Random) -> Iterator[list[Value]]:
    accepted: dict[bytes, Value] = {}
    for line in gzip.decompress(ACCEPTED.read_bytes()).splitlines():
        case = orjson.loads(line)
        case["definition"]["spec"].pop("conversion", None)
        if not case["faults"] and "old" not in case:
            accepted.setdefault(orjson.dumps(case["definition"]["spec"]["versions"]), case["definition"])
    for each in accepted.values():
        yield [each]
    for _ in range(CLUSTERS):
        group = random.choice(GROUPS)
        kinds = random.sample(KINDS, random.choice((1, 1, 2, 3)))
        yield [definition(group, *kind, random) for kind in kinds]


def definition(group: str, kind: str, plural: str, random: Random) -> Value:
    names = {"kind": kind, "plural": plural}
    names |= {"singular": kind.lower()} if random.random() < 0.5 else {}
    names |= {"listKind": f"{kind}Items"} if random.random() < 0.2 else {}
    names |= {"shortNames": [kind[:2].lower()], "categories": ["all"]} if random.random() < 0.3 else {}
    versions = [version(name, random) for name in random.choice((["v1"], ["v1"], ["v1", "v2beta1"]))]
    versions[0]["storage"] = True
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": random.choice(("Namespaced", "Cluster")),
            "versions": versions,
        },
    }


def version(name: str, random: Random) -> Value:
    fields = {"spec": Schemas(random).pair()[0]}
    if random.random() < 0.5:
        fields["status"] = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
        fields["status"]["description"] = "What it is."
    schema: Value = {"type": "object", "properties": fields}
    if random.random() < 0.4:
        fields |= {"apiVersion": {"type": "string"}, "kind": {"type": "string", "description": "Its kind."}}
        fields["metadata"] = {"type": "object"}
    if random.random() < 0.3:
        schema["description"] = "A kind of ours."
    if random.random() < 0.15:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if random.random() < 0.2:
        fields["template"] = {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    if random.random() < 0.2:
        item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}
        fields["pairs"] = {"type": "array", "items": item}
        fields["pairs"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    if random.random() < 0.2:
        fields["mode"] = {"type": "string", "default": "a", "enum": ["a", "b"]}
    made: Value = {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}}
    if random.random() < 0.4:
        made["subresources"] = {"status": {}}
        if random.random() < 0.5:
            made["subresources"]["scale"] = {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            }
    if random.random() < 0.1:
        made |= {"deprecated": True}
    return made


def objects(manifest: Value, random: Random) -> Iterator[tuple[Value, Value]]:
    """Each with its schema; of definitions that were made here."""
    spec = manifest["spec"]
    for each in spec["versions"] if spec["group"] in GROUPS else ():
        schema = each["schema"]["openAPIV3Schema"]
        own = schema["properties"]["spec"]
        values = Instances(random, own, own)
        for _ in range(OBJECTS):
            made = {
                "apiVersion": f"{spec['group']}/{each['name']}",
                "kind": spec["names"]["kind"],
                "metadata": {"name": "a"},
                "spec": values.make(),
            }
            if "mode" in schema["properties"]:
                made["mode"] = random.choice(("a", "b", "c"))
            if "pairs" in schema["properties"]:
                made["pairs"] = [{"k": random.choice("abc")} for _ in range(random.randint(0, 3))]
            yield schema, made


def with_list_kind(manifest: Value) -> Value:
    """As an apiserver stores it."""
    names = manifest["spec"]["names"]
    return {
        **manifest,
        "spec": {**manifest["spec"], "names": {"listKind": f"{names['kind']}List", **names}},
    }


def answers(program: Path, lines: Iterable[Any]) -> list[Any]:
    asked = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    done = subprocess.run([program], input=asked, stdout=subprocess.PIPE, check=True)
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def main(folder: Path) -> None:
    random = Random(1)
    made = list(clusters(random))
    recorded: list[Value] = [{"definitions": each, "documents": {}, "v2": {}, "objects": []} for each in made]
    for release in RELEASES:
        documents = answers(folder / f"documents-{release}", made)
        for line, found in zip(recorded, documents, strict=True):
            line["documents"][release] = {key: digest(each) for key, each in found.items()}
        for line, each in zip(recorded, made, strict=True):
            line["v2"][release] = {
                f"{found['name']} {found['version']} {name}": digest(schema)
                for found in answers(folder / f"v2-{release}", map(with_list_kind, each))
                for name, schema in found["definitions"].items()
                if not name.startswith("io.k8s.")
            }
    for line, cluster in zip(recorded, made, strict=True):
        asked = [each for manifest in cluster for each in objects(manifest, random)]
        if asked:
            told = answers(folder / "objects-1.37", ({"schema": s, "object": o} for s, o in asked))
            line["objects"] = [[each, answer] for (_, each), answer in zip(asked, told, strict=True)]
    data = b"".join(orjson.dumps(line, option=orjson.OPT_SORT_KEYS) + b"\n" for line in recorded)
    RECORDED.write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(recorded)} clusters, {RECORDED.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

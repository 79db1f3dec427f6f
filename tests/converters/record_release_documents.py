"""Write ``kubernetes_releases.json.zst`` from the documents that Kubernetes publishes in its Go module.

``python record_release_documents.py v1.30.14 … v1.37.2`` takes these versions of k8s.io/kubernetes; without
any those that the file names, whose hashes have to be the same. Needs ``go``, and the module proxy for what
is not in the module cache.

Kubernetes publishes them as an apiserver without the feature gate ``OpenAPIEnums`` writes them. It is on
since 1.24, so the enums come from the Go code that an apiserver makes its documents from.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from specmux_aggregator import built_in_releases
from specmux_aggregator.built_in_releases import FILE
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import PublishedRelease, pack_documents
from specmux_converters.releases import RELEASES, release_in

MODULE = "k8s.io/kubernetes"
DATA = Path(built_in_releases.__file__).with_name(FILE)
DOCUMENTS = "api/openapi-spec/v3"
DEFINITIONS = "pkg/generated/openapi/zz_generated.openapi.go"
_NAMED = re.compile(r'\t\t(?:"([^"]+)\.(\w+)"|(\w+)\.(\w+)\{\}\.OpenAPIModelName\(\)): +(schema_\w+)\(ref\),')
_IMPORTED = re.compile(r'\t(\w+) "([^"]+)"')
_MEMBERS = {"Properties": "properties", "Items": "items", "AdditionalProperties": "additionalProperties"}


def published(module: str, hash: str, folder: Path) -> PublishedRelease:
    """Of the module's files; the documents have the enums that an apiserver serves."""
    documents = {
        GroupVersion(path.name.removesuffix("_openapi.json").replace("__", "/")): orjson.loads(
            path.read_bytes()
        )
        for path in folder.joinpath(DOCUMENTS).glob("*_openapi.json")
    }
    assert documents, folder
    for name, path, values in enums_in(folder.joinpath(DEFINITIONS).read_text()):
        for document in documents.values():
            node = document.get("components", {}).get("schemas", {}).get(name)
            if node is not None:
                for member in path:
                    node = node[member]
                node["enum"] = values
    return PublishedRelease(module, hash, documents)


def enums_in(definitions: str) -> Iterator[tuple[str, list[str], list[Any]]]:
    """Of each enum in Go code of openapi-gen the schema, the members that lead to it, and its values."""
    packages: dict[str, str] = {}
    names: dict[str, str] = {}
    schema = ""
    opened: list[tuple[int, str]] = []
    for line in definitions.splitlines():
        if found := _IMPORTED.fullmatch(line):
            packages[found[1]] = found[2]
        elif found := _NAMED.fullmatch(line):
            host, _, path = (found[1] or packages[found[3]]).partition("/")
            parts = [*reversed(host.split(".")), *path.split("/"), found[2] or found[4]]
            names[found[5]] = ".".join(parts)
        elif line.startswith("func schema_"):
            schema, opened = line.removeprefix("func ").partition("(")[0], []
        else:
            text = line.lstrip("\t")
            depth = len(line) - len(text)
            while opened and opened[-1][0] >= depth:
                opened.pop()
            key, _, value = text.partition(":")
            if key == "Enum":
                values = value.strip().removeprefix("[]interface{}{").removesuffix("},")
                path = [_MEMBERS.get(each, each) for _, each in opened]
                yield names[schema], path, json.loads(f"[{values}]")
            elif text.endswith("{") and (key in _MEMBERS or key.startswith('"')):
                opened.append((depth, json.loads(key) if key.startswith('"') else key))


def downloaded(version: str) -> PublishedRelease:
    """Of the module proxy."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{version}"],
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    return published(f"{MODULE}@{found['Version']}", found["Sum"], Path(found["Dir"]))


def main(versions: Iterable[str]) -> None:
    expected: dict[str, str] = {}
    if not versions:
        recorded = built_in_releases.built_in_releases()
        expected = dict(map(recorded.source_of, recorded.releases))
        versions = [module.rpartition("@")[2] for module in expected]
    releases = {str(release_in(version)).removeprefix("v"): downloaded(version) for version in versions}
    assert tuple(releases) == RELEASES, f"{tuple(releases)} are not the known releases {RELEASES}"
    for each in releases.values():
        assert expected.get(each.module, each.hash) == each.hash, (
            f"{each.module} has another hash: {each.hash}"
        )
    data = pack_documents(releases)
    DATA.write_bytes(data)
    print(f"{DATA.name}: {len(data)} bytes, {', '.join(each.module for each in releases.values())}")


if __name__ == "__main__":
    main(sys.argv[1:])

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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

from specmux_aggregator import built_in_releases
from specmux_aggregator.built_in_releases import FILE
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import BETWEEN, END, LINE, SCHEMAS, START, facts_of
from specmux_converters.releases import RELEASES, release_in

MODULE = "k8s.io/kubernetes"
DATA = Path(built_in_releases.__file__).with_name(FILE)
DOCUMENTS = "api/openapi-spec/v3"
DEFINITIONS = "pkg/generated/openapi/zz_generated.openapi.go"
_NAMED = re.compile(r'\t\t(?:"([^"]+)\.(\w+)"|(\w+)\.(\w+)\{\}\.OpenAPIModelName\(\)): +(schema_\w+)\(ref\),')
_IMPORTED = re.compile(r'\t(\w+) "([^"]+)"')
_STREAM = 144 * 1024
"""Bytes of text after which another stream begins."""
_SHORT = 24
"""Bytes of JSON that are no shorter as a line of their own."""
_MEMBERS = {"Properties": "properties", "Items": "items", "AdditionalProperties": "additionalProperties"}


@dataclass(frozen=True)
class PublishedRelease:
    """The documents of one release as they were published."""

    module: str
    """The Go module with its version: ``k8s.io/kubernetes@v1.37.2``."""
    hash: str
    """The module's, as in go.sum."""
    documents: Mapping[GroupVersion, Document] = field(repr=False)


def pack_documents(releases: Mapping[str, PublishedRelease]) -> bytes:
    """The documents of all releases, without their prose. The same releases give the same bytes."""
    facts = {
        release: {key: facts_of(document) for key, document in sorted(published.documents.items())}
        for release, published in releases.items()
    }
    pack = _Pack(each["paths"].values() for documents in facts.values() for each in documents.values())
    lines: dict[str, dict[GroupVersion, int]] = {release: {} for release in releases}
    for key in sorted({key for documents in facts.values() for key in documents}):
        having = {release: documents[key] for release, documents in facts.items() if key in documents}
        for release, line in zip(having, pack.add_documents(having.values()), strict=True):
            lines[release][key] = line
    streams = list(_streams(pack.lines))
    compressed = [_compress(BETWEEN.join(each) + end) for each, end in streams]
    index = {
        "zstd": zstandard.ZSTD_VERSION,  # others make other bytes of the same text
        "streams": [(len(each), len(data)) for (each, _), data in zip(streams, compressed, strict=True)],
        "releases": {
            release: {"module": each.module, "hash": each.hash, "documents": lines[release]}
            for release, each in releases.items()
        },
    }
    return b"".join([_compress(START + orjson.dumps(index) + BETWEEN), *compressed])


def _streams(lines: list[bytes]) -> Iterable[tuple[list[bytes], bytes]]:
    """The lines of each stream, and what follows the last of them."""
    start = size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > _STREAM and number + 1 < len(lines):
            yield lines[start : number + 1], BETWEEN
            start, size = number + 1, 0
    yield lines[start:], END


def _compress(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=zstandard.MAX_COMPRESSION_LEVEL, write_checksum=True).compress(text)


class _Pack:
    """Lines while they are being collected. The first is the index."""

    def __init__(self, items: Iterable[Iterable[Any]]) -> None:
        self.lines: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self._places: Counter[bytes] = Counter()
        """Number of distinct values that contain a part of path items."""
        for item in {orjson.dumps(each): each for of_document in items for each in of_document}.values():
            self._count(item)

    def add_documents(self, documents: Iterable[Document]) -> list[int]:
        """Add a group-version's documents: first all schemas, which many others have, then all paths."""
        drafts = []
        for document in documents:
            components = dict(document.get("components") or {})
            schemas = components.pop(SCHEMAS, None)
            frame = self._add({**document, "components": components, "paths": {}})
            named = None if schemas is None else _runs([self._add([*each]) for each in schemas.items()])
            drafts.append((frame, named, document["paths"]))
        return [
            self._add(
                [frame, named, _runs([self._add([path, self._shorten(paths[path])]) for path in paths])]
            )
            for frame, named, paths in drafts
        ]

    def _count(self, value: Any) -> None:
        if isinstance(value, dict | list):
            data = orjson.dumps(value)
            self._places[data] += 1
            if self._places[data] == 1:
                for each in value.values() if isinstance(value, dict) else value:
                    self._count(each)

    def _add(self, value: Any) -> int:
        data = orjson.dumps(value)
        if data not in self._known:
            self.lines.append(data)
            self._known[data] = len(self.lines)
        return self._known[data]

    def _shorten(self, value: Any) -> Any:
        """With lines for what stands in several places."""
        if not isinstance(value, dict | list):
            return value
        data = orjson.dumps(value)
        inner: Any
        if isinstance(value, dict):
            inner = {key: self._shorten(each) for key, each in value.items()}
        else:
            inner = [self._shorten(each) for each in value]
        return {LINE: self._add(inner)} if self._places[data] > 1 and len(data) > _SHORT else inner


def _runs(lines: list[int]) -> list[int]:
    """Lines as pairs of the distance from the end of the last run, and the length of the next: what is added
    together stands together."""
    runs: list[int] = []
    end = 0
    for line in lines:
        if runs and line == end:
            runs[-1] += 1
        else:
            runs += [line - end, 1]
        end = line + 1
    return runs


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

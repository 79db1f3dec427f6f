"""Write ``kubernetes_releases.json.zst`` from the documents that Kubernetes publishes in its Go module.

``python record_release_documents.py v1.30.14 … v1.37.2`` takes these versions of k8s.io/kubernetes; without
any those that the file names, whose hashes have to be the same. Needs ``go``, and the module proxy for what
is not in the module cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import orjson

from specmux_aggregator import built_in_releases
from specmux_aggregator.built_in_releases import FILE
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import PublishedRelease, pack_documents
from specmux_converters.releases import RELEASES, release_in

MODULE = "k8s.io/kubernetes"
DATA = Path(built_in_releases.__file__).with_name(FILE)
DOCUMENTS = "api/openapi-spec/v3"


def published(module: str, hash: str, folder: Path) -> PublishedRelease:
    """Of the module's files."""
    documents = {
        GroupVersion(path.name.removesuffix("_openapi.json").replace("__", "/")): orjson.loads(
            path.read_bytes()
        )
        for path in folder.joinpath(DOCUMENTS).glob("*_openapi.json")
    }
    assert documents, folder
    return PublishedRelease(module, hash, documents)


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

"""Documents and the root, beside the apiserver's own."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.binaries import VERSION, Binaries, Unbuildable
from cluster.control_plane import ControlPlane
from cluster.objects import as_list, crd
from cluster.serving import discovered, document, front_proxy, serving, until
from shared_data import DATA, read
from specmux_converters.errors import ConverterError
from specmux_converters.media_types import PROTOBUF
from specmux_converters.recognise import DocumentKind, recognise

WANTED = os.environ.get("SPECMUX_CLUSTER_RELEASES", "").split()
"""More releases, which are built where they are not in the cache yet."""
RELEASES = dict.fromkeys((VERSION, "v1.34.4", "v1.37.2", *WANTED))

pytestmark = pytest.mark.timeout(1200)


def definitions() -> Iterator[dict[str, Any]]:
    """Ours, and those of the reference data that a cluster takes."""
    yield crd("Plain")
    yield crd("Selected", selectableFields=[{"jsonPath": ".spec.color"}], **selectable())
    for path in sorted((DATA / "crds").rglob("*.yaml*")) if (DATA / "crds").exists() else ():
        try:
            found = recognise(read(path))
        except ConverterError:
            continue
        if found.kind is DocumentKind.CRDS:
            yield from (item for item in found.documents if item["apiVersion"].endswith("/v1"))


def selectable() -> dict[str, Any]:
    color = {"type": "string", "externalDocs": {"url": "https://example.com", "description": "colors"}}
    spec = {"type": "object", "properties": {"color": color}}
    return {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}


def compare(plane: ControlPlane, folder: Path) -> tuple[int, list[str]]:
    """How many documents of definitions are deep-equal to the apiserver's, and which are not."""
    items = {item["metadata"]["name"]: item for item in definitions()}
    plane.apply(as_list(*items.values()))
    keys = {
        f"apis/{item['spec']['group']}/{version['name']}"
        for item in items.values()
        for version in item["spec"]["versions"]
        if version["served"]
    }
    with serving(plane, folder) as process:
        until(lambda: keys <= set(process.paths()), "all published", 300)
        until(lambda: keys <= plane.json("/openapi/v3")["paths"].keys(), "upstream too", 300)
        time.sleep(3)
        wrong = []
        for key in sorted(keys):
            status, _, body = document(process, key)
            assert status == 200, key
            if json.loads(body) != plane.json(f"/openapi/v3/{key}"):
                wrong.append(key)
        owners = json.loads(process.get("/status")[2])["groupVersions"]
        assert {owners[key]["owner"] for key in keys} == {"kubernetes-crds"}
    return len(keys) - len(wrong), wrong


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("release", list(RELEASES))
def test_documents_of_definitions_are_those_of_the_release(
    release: str, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    binaries = Binaries(release)
    if not binaries.is_built and release not in (VERSION, *WANTED):
        pytest.skip(f"{release} is not built: SPECMUX_CLUSTER_RELEASES={release} builds it, in minutes")
    try:
        with ControlPlane(binaries, tmp_path / "cluster") as other:  # one of its own: to delete takes minutes
            equal, wrong = compare(other, tmp_path)
    except Unbuildable as fault:
        pytest.skip(f"{release} cannot be built here: {fault}")
    assert wrong == []
    tally(f"documents of definitions deep-equal to the apiserver's, {release}", equal)


def test_every_other_document_is_the_apiservers_to_the_byte(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    with front_proxy(plane) as shown, serving(plane, tmp_path, kubernetes=shown) as process:
        until(lambda: "apis/wardle.example.com/v1alpha1" in discovered(process), "wardle")
        upstream = plane.json("/openapi/v3")["paths"]
        ours = process.paths()
        assert ours.keys() == upstream.keys()
        for key in sorted(ours):
            status, _, body = document(process, key)
            assert status == 200, key
            assert body in variants(plane, key, {}), key
            status, _, body = document(process, key, Accept=PROTOBUF)
            assert status == 200, key
            assert body in variants(plane, key, {"Accept": PROTOBUF}), key
        tally("documents of a release byte-equal to the apiserver's, JSON and Protobuf", len(ours))


def variants(plane: ControlPlane, key: str, fields: dict[str, str]) -> set[bytes]:
    """What the apiserver answers; of ``apis`` and ``version`` it has a document of each server."""
    times = 12 if key in ("apis", "version") else 1
    return {plane.get(f"/openapi/v3/{key}", **fields)[1] for _ in range(times)}


def test_root_does_not_flap_and_replicas_agree(plane: ControlPlane, tmp_path: Path) -> None:
    with (
        front_proxy(plane) as shown,
        serving(plane, tmp_path / "one", kubernetes=shown, polling={"interval": 1}) as one,
        serving(plane, tmp_path / "two", kubernetes=shown, polling={"interval": 1}) as two,
    ):
        both = (one, two)
        until(lambda: one.paths() == two.paths() and "apis" in one.paths(), "both know it")
        roots: set[str] = set()
        for _ in range(60):
            for process in both:
                roots.add(hashlib.sha256(process.get("/openapi/v3")[2]).hexdigest())
                for key in ("apis", "version"):
                    status, _, body = process.get(process.paths()[key])
                    assert status == 200
                    assert json.loads(body)["info"]["title"] == "Kubernetes"
            time.sleep(0.5)
        assert len(roots) == 1

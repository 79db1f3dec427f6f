"""Directories of CustomResourceDefinition manifests, published as an apiserver would publish them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import yaml

from data.crd_manifests import manifests
from running.service import backend, service
from shared_data import DATA, needs
from specmux_aggregator.model.backend import BackendKind
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion

WIDGETS = "apis/example.com/v1"


def manifest(kind: str, *versions: str, description: str = "", served: bool = True) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "description": description, "properties": {"spec": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": name, "served": served, "storage": True, "schema": {"openAPIV3Schema": schema}}
                for name in versions
            ],
        },
    }


def write(path: Path, *manifests: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(manifests))


def crds(folder: Path) -> Any:
    return backend("crds", kind=BackendKind.CRDS, directory=folder)


def components(body: bytes) -> set[str]:
    return {name for name in orjson.loads(body)["components"]["schemas"] if name.startswith("com.example")}


async def test_manifests_are_published_and_the_metric_of_the_kep_is_observed(tmp_path: Path) -> None:
    write(tmp_path / "base" / "widgets.yaml", manifest("Widget", "v1", "v2"), manifest("Gadget", "v1"))
    (tmp_path / "kustomization.yaml").write_text("resources: [base]\n")
    async with service(crds(tmp_path)) as client:
        await client.ready()
        paths = await client.paths()
        assert sorted(paths) == ["apis/example.com/v1", "apis/example.com/v2"]
        status, headers, body = await client.get(paths[WIDGETS])
        assert status == 200
        assert "immutable" in headers["Cache-Control"]
        assert {"com.example.v1.Widget", "com.example.v1.Gadget"} <= components(body)
        report = await client.status()
        assert report["groupVersions"][WIDGETS]["provenance"] == "crd"
        assert report["backends"]["crds"]["notes"] == []
        text = (await client.get("/metrics"))[2]
        assert b"crd_openapi_v3_aggregation_duration_seconds_count 2.0" in text


async def test_manifest_that_appears_changes_stops_being_served_or_goes_is_published(tmp_path: Path) -> None:
    write(tmp_path / "widgets.yaml", manifest("Widget", "v1"))
    async with service(crds(tmp_path)) as client:
        await client.ready()
        current = client.app.publisher

        def hash_now() -> str | None:
            entry = current.current.entries.get(WIDGETS)  # type: ignore[call-overload]
            return entry.offer.hash if entry else None

        async def changed_from(before: str | None) -> str | None:
            await client.until(lambda: hash_now() != before)
            return hash_now()

        first = hash_now()
        write(tmp_path / "gadgets.yaml", manifest("Gadget", "v1"))
        second = await changed_from(first)
        write(tmp_path / "gadgets.yaml", manifest("Gadget", "v1", description="changed"))
        third = await changed_from(second)
        write(tmp_path / "gadgets.yaml", manifest("Gadget", "v1", served=False))
        assert await changed_from(third) == first
        (tmp_path / "widgets.yaml").unlink()
        assert await changed_from(first) is None


async def test_broken_and_conflicting_manifests_are_notes_and_take_nothing_away(tmp_path: Path) -> None:
    write(tmp_path / "widgets.yaml", manifest("Widget", "v1"))
    write(tmp_path / "gadgets.yaml", manifest("Gadget", "v1"))
    async with service(crds(tmp_path)) as client:
        await client.ready()
        url = (await client.paths())[WIDGETS]
        thief = manifest("Widget", "v1")
        thief["metadata"]["name"] = thief["spec"]["names"]["plural"] = "others"
        write(tmp_path / "z-thief.yaml", thief)
        (tmp_path / "gadgets.yaml").write_text("kind: CustomResourceDefinition\n{{ template }}\n")
        seen = client.app.publisher
        await client.until(lambda: len(seen.current.observations["crds"].notes) >= 2)  # type: ignore[index]
        assert (await client.paths())[WIDGETS] == url
        notes = (await client.status())["backends"]["crds"]["notes"]
        assert any(note.startswith("gadgets.yaml") for note in notes)


@needs("data/crds")
def test_real_manifests_are_served_as_upstream_builds_them() -> None:
    """As the golden documents of the newest release, which ``build`` equals in each release."""
    folder = DATA / "crds" / "cert-manager"
    built = build(manifests(folder)).documents

    async def scenario() -> int:
        async with service(crds(folder)) as client:
            await client.ready()
            compared = 0
            for key, url in (await client.paths()).items():
                assert orjson.loads((await client.get(url))[2]) == built[GroupVersion(key)]
                compared += 1
            return compared

    assert asyncio.run(scenario()) == len(built) > 0

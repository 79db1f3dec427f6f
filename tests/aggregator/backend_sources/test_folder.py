"""A directory that holds documents and CustomResourceDefinitions beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from fakes.apiserver import document
from specmux_aggregator.aggregation.check_schedule import after
from specmux_aggregator.backend_sources.directory import FolderOrigin
from specmux_aggregator.backend_sources.files import Folder
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.observation import Observation, Provenance
from specmux_aggregator.workers.worker import Worker
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion

CUSTOM = GroupVersion("apis/example.com/v1")


def definition(plural: str, **schema: Any) -> bytes:
    return orjson.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": plural.title(), "shortNames": [plural[:2]]},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
                    }
                ],
            },
        }
    )


class Watched:
    """An origin and what is known of it, look by look."""

    def __init__(self, path: Path, worker: Worker) -> None:
        backend = Backend(name=BackendName("files"), kind=BackendKind.DIRECTORY, directory=path)
        folder = Folder(path, max_files=100, max_bytes=1 << 20)
        self.origin = FolderOrigin(backend, folder, worker, limits=DEFAULT_LIMITS, max_group_versions=100)
        self.known = Observation(backend=backend)
        self.bodies: dict[tuple[GroupVersion, str], bytes] = {}

    async def look(self) -> Outcome:
        outcome = await self.origin.observe(self.known)
        if isinstance(outcome, BackendOffers):
            for key, body in outcome.bodies.items():
                self.bodies[key, outcome.offers[key].hash] = body
        self.known = after(self.known, outcome, now=0.0)
        assert all((key, offer.hash) in self.bodies for key, offer in self.known.offers.items())
        return outcome


def on_a_loop(test: Callable[[Path, Worker], Awaitable[None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        async def main() -> None:
            worker = Worker(timeout=30)
            try:
                await test(tmp_path, worker)
            finally:
                await worker.close()

        asyncio.run(main())

    return run


@on_a_loop
async def test_definitions_beside_documents_are_published(tmp_path: Path, worker: Worker) -> None:
    (tmp_path / "core.json").write_bytes(document("api/v1"))
    for plural in ("widgets", "gadgets"):
        (tmp_path / f"{plural}.json").write_bytes(definition(plural))
    watched = Watched(tmp_path, worker)
    seen = await watched.look()
    assert isinstance(seen, BackendOffers)
    assert {key: offer.provenance for key, offer in seen.offers.items()} == {
        "api/v1": Provenance.FILE,
        CUSTOM: Provenance.CRD,
    }
    assert [each.short_names for each in seen.resources[CUSTOM]] == [("ga",), ("wi",)]
    assert seen.notes == ()
    assert isinstance(await watched.look(), UnchangedOffers)


@on_a_loop
async def test_only_what_changed_is_delivered_again(tmp_path: Path, worker: Worker) -> None:
    (tmp_path / "core.json").write_bytes(document("api/v1"))
    (tmp_path / "widgets.json").write_bytes(definition("widgets"))
    watched = Watched(tmp_path, worker)
    await watched.look()
    (tmp_path / "widgets.json").write_bytes(definition("widgets", description="more"))
    seen = await watched.look()
    assert isinstance(seen, BackendOffers)
    assert (sorted(seen.offers), list(seen.bodies)) == (["api/v1", CUSTOM], [CUSTOM])


@on_a_loop
async def test_the_last_definition_that_goes_takes_its_document_with_it(
    tmp_path: Path, worker: Worker
) -> None:
    (tmp_path / "core.json").write_bytes(document("api/v1"))
    (tmp_path / "widgets.json").write_bytes(definition("widgets"))
    watched = Watched(tmp_path, worker)
    await watched.look()
    (tmp_path / "widgets.json").unlink()
    seen = await watched.look()
    assert isinstance(seen, BackendOffers)
    assert list(seen.offers) == ["api/v1"]
    assert isinstance(await watched.look(), UnchangedOffers)


@on_a_loop
async def test_a_document_goes_before_definitions_and_they_come_back(tmp_path: Path, worker: Worker) -> None:
    (tmp_path / "widgets.json").write_bytes(definition("widgets"))
    watched = Watched(tmp_path, worker)
    await watched.look()
    written = tmp_path / "document.json"
    written.write_bytes(document(CUSTOM))
    seen = await watched.look()
    assert isinstance(seen, BackendOffers)
    assert seen.offers[CUSTOM].provenance is Provenance.FILE
    assert [note for note in seen.notes if note.startswith(CUSTOM)]
    written.unlink()
    again = await watched.look()
    assert isinstance(again, BackendOffers)
    assert again.offers[CUSTOM].provenance is Provenance.CRD
    assert CUSTOM in again.resources


@on_a_loop
async def test_an_unusable_definition_is_a_note(tmp_path: Path, worker: Worker) -> None:
    (tmp_path / "core.json").write_bytes(document("api/v1"))
    (tmp_path / "widgets.json").write_bytes(definition("widgets").replace(b"Namespaced", b"Nowhere"))
    seen = await Watched(tmp_path, worker).look()
    assert isinstance(seen, BackendOffers)
    assert any("must be Namespaced or Cluster" in note for note in seen.notes)

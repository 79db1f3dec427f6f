"""CustomResourceDefinitions of a cluster as manifests: which count, in which order, and what is no change."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from specmux_aggregator.aggregation.check_schedule import after
from specmux_aggregator.backend_sources.crds import CRDsOrigin
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.kubernetes.custom_resources import (
    Definition,
    WatchedManifests,
    definitions,
    keep_definition,
)
from specmux_aggregator.kubernetes.watch_events import ListPage, WatchedObjects, page_of
from specmux_aggregator.kubernetes.watch_events import after as after_events
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.workers.worker import Worker
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.document import Limits as DocumentLimits

V1 = "apis/example.com/v1"


def definition(
    kind: str, *, version: str = "v1", created: str = "2026-01-01T00:00:00Z", established: str = "True"
) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com", "creationTimestamp": created, "managedFields": [{}]},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


async def bundled() -> Templates:
    return BUNDLED


class Cluster:
    def __init__(self, worker: Worker) -> None:
        self.manifests = WatchedManifests(bundled)
        backend = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, url="https://cluster")
        self.origin = CRDsOrigin(backend, self.manifests, worker, limits=DocumentLimits())
        self.last = Observation(backend=backend)

    def has(self, *items: dict[str, Any]) -> None:
        self.manifests.take(
            definitions({str(index): keep_definition(item) for index, item in enumerate(items)})
        )

    async def check(self) -> Outcome:
        sighting = await self.origin.observe(self.last)
        self.last = after(self.last, sighting, now=0.0)
        return sighting

    async def kinds(self) -> list[str]:
        sighting = await self.check()
        assert isinstance(sighting, BackendOffers)
        return sorted(sighting.offers)


def run(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        worker = Worker(timeout=30.0)
        try:
            await scenario(Cluster(worker))
        finally:
            await worker.close()

    asyncio.run(main())


def test_established_definitions_are_published_and_others_are_not() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.has(definition("Widget"), definition("Gadget", version="v2", established="False"))
        assert await cluster.kinds() == [V1]
        cluster.has(definition("Widget"), definition("Gadget", version="v2"))
        assert await cluster.kinds() == [V1, "apis/example.com/v2"]
        cluster.has({"metadata": None, "status": None}, {"status": {"conditions": "no"}, "spec": []})
        assert await cluster.kinds() == []

    run(scenario)


def test_heartbeat_of_a_status_builds_nothing() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.has(definition("Widget"))
        assert await cluster.kinds() == [V1]
        beaten = definition("Widget")
        beaten["metadata"] |= {"resourceVersion": "2", "managedFields": [{"manager": "x"}]}
        beaten["status"]["conditions"].append({"type": "NamesAccepted", "status": "True"})
        cluster.has(beaten)
        assert isinstance(await cluster.check(), UnchangedOffers)
        beaten = orjson.loads(orjson.dumps(beaten))
        beaten["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "changed"
        cluster.has(beaten)
        assert isinstance(await cluster.check(), BackendOffers)

    run(scenario)


def test_of_two_that_collide_the_older_one_stays() -> None:
    async def scenario(cluster: Cluster) -> None:
        older = definition("Widget", created="2025-01-01T00:00:00Z")
        thief = definition("Widget")
        thief["spec"]["names"]["plural"] = "athieves"
        thief["metadata"]["name"] = "athieves.example.com"
        cluster.has(thief, older)
        sighting = await cluster.check()
        assert isinstance(sighting, BackendOffers)
        (note,) = sighting.notes
        assert note.startswith("athieves.example.com: ")

    run(scenario)


def test_definition_that_cannot_be_written_out_is_a_note_and_costs_no_other() -> None:
    async def scenario(cluster: Cluster) -> None:
        deep: Any = {}
        for _ in range(600):
            deep = {"a": deep}
        bottomless = definition("Gadget")
        bottomless["spec"]["more"] = deep
        cluster.has(definition("Widget"), bottomless)
        sighting = await cluster.check()
        assert isinstance(sighting, BackendOffers)
        assert sighting.notes == ("gadgets.example.com: unreadable: nested too deeply",)
        assert list(sighting.offers) == [V1]

    run(scenario)


def test_check_waits_for_the_first_list_and_fails_while_there_is_none() -> None:
    async def scenario(cluster: Cluster) -> None:
        waiting = asyncio.create_task(cluster.check())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        cluster.manifests.fail(Failure(Cause.REFUSED, "nothing there"))
        assert await waiting == Failure(Cause.REFUSED, "nothing there")
        cluster.has(definition("Widget"))
        assert await cluster.kinds() == [V1]
        cluster.manifests.fail(Failure(Cause.RESET, "gone"))
        assert isinstance(await cluster.check(), Failure)
        assert list(cluster.last.offers) == [V1]

    run(scenario)


def test_of_an_object_little_is_held_and_it_is_the_same_until_it_changes() -> None:
    item = definition("Widget")
    item["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    page = {"kind": "CustomResourceDefinitionList", "metadata": {"resourceVersion": "9"}, "items": [item]}
    read = page_of(page, None, keep=keep_definition)
    assert isinstance(read, ListPage)
    first = WatchedObjects(read.objects, read.version)
    (held,) = first.objects.values()
    assert isinstance(held, Definition)
    assert held.manifest is not None
    json = zlib.decompress(held.manifest.packed)
    assert orjson.loads(json).keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert b"managedFields" not in json
    read = page_of(page, first, keep=keep_definition)
    assert isinstance(read, ListPage)
    again = WatchedObjects(read.objects, read.version)
    assert again.objects["widgets.example.com"] is held
    item["metadata"]["resourceVersion"] = "10"
    later, failure = after_events(again, [{"type": "MODIFIED", "object": item}], keep=keep_definition)
    assert failure is None
    assert definitions(later.objects) == definitions(first.objects)
    assert later.objects["widgets.example.com"] is not held

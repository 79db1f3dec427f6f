"""Manifests of a directory, built again and again: what changed is made, the rest is kept; in parts, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import orjson
import pytest

from running.cluster_service import definition
from specmux_aggregator.aggregation.check_schedule import after, delay
from specmux_aggregator.backend_sources import crds
from specmux_aggregator.backend_sources.crds import CRDsOrigin
from specmux_aggregator.backend_sources.outcome import BackendOffers, UnchangedOffers
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.errors import TookTooLong, WorkerFailed
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.workers.built import ManifestFile
from specmux_aggregator.workers.documents import BuildMemo
from specmux_converters.crd import BUNDLED, Templates
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

ONE, TWO = GroupVersion("apis/one.example.com/v1"), GroupVersion("apis/two.example.com/v1")


class WorkerHere:
    """Runs jobs in this process, and fails at groups like a real one."""

    def __init__(self) -> None:
        self.memo = BuildMemo()
        self.jobs: list[list[str]] = []
        self.deadly: dict[str, WorkerFailed] = {}

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    async def build(self, function: Callable[..., Any], backend: str, groups: Any, **kwargs: Any) -> Any:
        self.jobs.append([*groups])
        for group in groups:
            if group in self.deadly:
                raise self.deadly[group]
        return function(self.memo, backend, groups, **kwargs)


class Directory:
    """An origin of manifests by name, and what is known of it."""

    def __init__(self, *, owned: frozenset[GroupVersion] | None = None) -> None:
        self.worker = WorkerHere()
        self.manifests: dict[str, bytes] = {}
        backend = Backend(name=BackendName("d"), kind=BackendKind.CRDS, group_versions=owned)
        worker: Any = self.worker
        self.origin = CRDsOrigin(backend, self, worker, limits=Limits())
        self.last = Observation(backend=backend)
        for name in ("one", "two"):
            self.put(name)

    def put(self, name: str, description: str = "", **names: Any) -> None:
        item = definition(name.capitalize(), group=f"{name}.example.com", description=description)
        item["spec"]["names"] |= names
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.manifests[f"{name}.json"] = orjson.dumps({**head, **item})

    async def scan(self) -> Mapping[str, Hashable]:
        return dict(self.manifests)

    async def templates(self) -> Templates:
        return BUNDLED

    def manifest(self, name: str) -> ManifestFile:
        return ManifestFile(name, self.manifests[name])

    def check(self) -> Any:
        outcome = asyncio.run(self.origin.observe(self.last))
        self.last = after(self.last, outcome, now=0.0)
        return outcome

    def build(self) -> BackendOffers:
        built = self.check()
        assert isinstance(built, BackendOffers)
        assert not built.is_partial
        return built


def test_only_the_group_that_changed_is_made() -> None:
    directory = Directory()
    first = directory.build()
    assert set(first.bodies) == set(first.resources) == {ONE, TWO}
    assert isinstance(directory.check(), UnchangedOffers)
    directory.put("two", "changed")
    again = directory.build()
    assert set(again.bodies) == set(again.seconds) == {TWO}
    assert [*again.offers] == [ONE, TWO]
    assert again.offers[ONE] is first.offers[ONE]
    assert directory.worker.jobs == [["one.example.com", "two.example.com"], ["two.example.com"]]


def test_names_that_are_in_no_document_are_told_when_they_change() -> None:
    directory = Directory()
    first = directory.build()
    directory.put("two", shortNames=["tw"])
    built = directory.build()
    assert built.bodies == {}
    assert [item.short_names for item in built.resources[TWO]] == [("tw",)]
    assert built.resources[ONE] is first.resources[ONE]


def test_everything_is_told_to_a_caller_who_holds_nothing() -> None:
    directory = Directory()
    first = directory.build()
    directory.last = Observation(backend=directory.last.backend)
    again = directory.build()
    assert (again.bodies, again.offers, again.resources) == (first.bodies, first.offers, first.resources)


def test_documents_of_an_earlier_run_are_delivered_once_by_this_one() -> None:
    earlier, directory = Directory(), Directory()
    first = earlier.build()
    directory.last = earlier.last
    assert directory.build().bodies == first.bodies
    assert directory.last is earlier.last or directory.last == earlier.last


def test_problems_are_told_as_long_as_they_last() -> None:
    directory = Directory()
    directory.put("two", plural="")
    told = directory.build().notes
    assert any("two" in note for note in told)
    directory.put("one", "changed")
    assert directory.build().notes == told
    directory.put("two")
    assert directory.build().notes == ()


def test_faulty_edit_keeps_what_the_file_said_and_a_removed_file_does_not() -> None:
    directory = Directory()
    first = directory.build()
    directory.manifests["two.json"] = b'{"kind": "CustomResourceDefinition", '
    built = directory.build()
    assert built.offers == first.offers
    assert any(note.startswith("two.json: ") for note in built.notes)
    del directory.manifests["two.json"]
    assert [*directory.build().offers] == [ONE]


def test_only_owned_group_versions_are_made() -> None:
    assert [*Directory(owned=frozenset({ONE})).build().offers] == [ONE]


def test_problem_of_a_whole_manifest_names_no_place() -> None:
    directory = Directory()
    directory.put("one", "a later one")
    directory.manifests["again.json"] = directory.manifests["one.json"]
    directory.put("one")
    (note,) = directory.build().notes
    assert note.startswith("ones.one.example.com: manifest: ")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is a part, and each check has time for one."""
    monkeypatch.setattr(crds, "PART_BYTES", 1)
    monkeypatch.setattr(crds, "SHARE", 0.0)


@pytest.mark.usefixtures("small_parts")
def test_large_build_comes_in_parts_that_are_kept() -> None:
    directory = Directory()
    first = directory.check()
    assert (first.is_partial, set(first.offers), set(first.bodies)) == (True, {ONE}, {ONE})
    assert not directory.last.attempted, "readiness waits for the rest"
    assert delay(PollingSettings(), first, failures=0, random_unit=0.5) == 0.0
    second = directory.check()
    assert (second.is_partial, set(second.offers), set(second.bodies)) == (False, {ONE, TWO}, {TWO})
    assert set(directory.last.resources) == {ONE, TWO}
    assert directory.last.attempted
    assert directory.worker.jobs == [["one.example.com"], ["two.example.com"]]
    assert isinstance(directory.check(), UnchangedOffers)


@pytest.mark.usefixtures("small_parts")
def test_documents_stay_while_a_later_part_is_built() -> None:
    directory = Directory()
    directory.check()
    before = directory.check()
    for name in ("one", "two"):
        directory.put(name, "changed")
    partial = directory.check()
    assert partial.is_partial
    assert partial.offers[TWO] == before.offers[TWO]
    assert partial.offers[ONE] != before.offers[ONE]
    assert directory.check().offers.keys() == before.offers.keys()


def test_group_at_which_the_worker_fails_costs_no_other_and_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = Directory()
    first = directory.build()
    directory.put("two", "deadly")
    directory.put("one", "changed")
    directory.worker.deadly["two.example.com"] = TookTooLong(60)
    built = directory.build()
    assert built.offers[TWO] == first.offers[TWO], "its documents stay"
    assert built.offers[ONE] != first.offers[ONE]
    assert built.notes == ("two.example.com: not built: not done after 60 s",)
    count = len(directory.worker.jobs)
    assert isinstance(directory.check(), UnchangedOffers), "not at once"
    assert len(directory.worker.jobs) == count
    directory.worker.deadly.clear()
    later = crds.time.monotonic() + crds.PAUSE_MIN + 1
    monkeypatch.setattr(crds.time, "monotonic", lambda: later)
    built = directory.build()
    assert built.notes == ()
    assert built.offers[TWO] != first.offers[TWO]


def test_worker_that_fails_at_everything_is_a_failure_until_it_works() -> None:
    directory = Directory()
    failed = WorkerFailed("the worker process died")
    directory.worker.deadly = {"one.example.com": failed, "two.example.com": failed}
    outcome = directory.check()
    assert isinstance(outcome, Failure)
    assert outcome.detail == "the worker process died"

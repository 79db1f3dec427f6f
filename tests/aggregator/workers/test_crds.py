"""Manifests of a directory or a cluster, built again and again: what changed is made, the rest is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from running.cluster_service import definition
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.workers.crds import CRDsBuilt, DirectoryMemo, ManifestFile, build_crds
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion

ONE, TWO = GroupVersion("apis/one.example.com/v1"), GroupVersion("apis/two.example.com/v1")


class Directory:
    """One memo, and the manifests that it is shown by name."""

    def __init__(self) -> None:
        self.memo = DirectoryMemo()
        self.held: dict[GroupVersion, Hash] = {}
        self.manifests: dict[str, bytes] = {}
        for name in ("one", "two"):
            self.put(name)

    def put(self, name: str, description: str = "", **names: Any) -> None:
        item = definition(name.capitalize(), group=f"{name}.example.com", description=description)
        item["spec"]["names"] |= names
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.manifests[f"{name}.json"] = orjson.dumps({**head, **item})

    def build(self, *, held: Mapping[GroupVersion, Hash] | None = None, owned: Any = None) -> CRDsBuilt:
        files = tuple(
            ManifestFile(name, hashlib.sha256(data).digest(), data) for name, data in self.manifests.items()
        )
        built = build_crds(
            self.memo, files, owned=owned, held=self.held if held is None else held, limits=Limits()
        )
        assert isinstance(built, CRDsBuilt)
        self.held = {item.group_version: item.offer.hash for item in built.documents}
        return built


def bodies(built: CRDsBuilt) -> set[str]:
    return {item.group_version for item in built.documents if item.gzip is not None}


def test_only_the_group_that_changed_is_made() -> None:
    directory = Directory()
    first = directory.build()
    assert bodies(first) == set(first.resources) == {ONE, TWO}
    same = directory.build()
    assert (bodies(same), dict(same.resources), dict(same.seconds)) == (set(), {}, {})
    assert [item.offer for item in same.documents] == [item.offer for item in first.documents]
    directory.put("two", "changed")
    again = directory.build()
    assert bodies(again) == set(again.resources) == set(again.seconds) == {TWO}
    assert [item.group_version for item in again.documents] == [ONE, TWO]


def test_names_that_are_in_no_document_are_told_when_they_change() -> None:
    directory = Directory()
    directory.build()
    directory.put("two", shortNames=["tw"])
    built = directory.build()
    assert bodies(built) == set()
    assert [item.short_names for item in built.resources[TWO]] == [("tw",)]
    assert ONE not in built.resources


def test_everything_is_told_to_a_caller_who_holds_nothing() -> None:
    directory = Directory()
    first = directory.build()
    again = directory.build(held={})
    assert again.documents == first.documents
    assert again.resources == first.resources


def test_problems_are_told_as_long_as_they_last() -> None:
    directory = Directory()
    directory.put("two", plural="")
    told = directory.build().notes
    assert any("two" in note for note in told)
    directory.put("one", "changed")
    assert directory.build().notes == told
    directory.put("two")
    assert directory.build().notes == ()


def test_other_group_versions_are_made_when_others_are_owned() -> None:
    directory = Directory()
    directory.build(owned=frozenset({ONE}))
    built = directory.build(owned=frozenset({ONE, TWO}))
    assert {item.group_version for item in built.documents} == {ONE, TWO}
    assert {item.group_version for item in directory.build(owned=frozenset({TWO})).documents} == {TWO}


def test_problem_of_a_whole_manifest_names_no_place() -> None:
    directory = Directory()
    directory.put("one", "a later one")
    directory.manifests["again.json"] = directory.manifests["one.json"]
    directory.put("one")
    (note,) = directory.build().notes
    assert note.startswith("ones.one.example.com: manifest: ")

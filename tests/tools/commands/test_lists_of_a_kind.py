"""Lists of a kind and lists within lists, opened by every command and door as kubectl opens them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from specmux_aggregator.cli import main
from specmux_converters.crd import build
from specmux_tools.mcp.library import Library
from specmux_tools.queries import validate
from specmux_tools.reader.validate_job import ObjectQuestion, questions_in
from specmux_tools.sources.disk.files import FileSource
from specmux_tools.validation import Directive, Validator
from specmux_tools.validation.decoding.body import MOST_NESTED, TOO_DEEP
from specmux_tools.validation.requests import BodyFormat

LIST = {"apiVersion": "v1", "kind": "List"}
ADDONS = {"apiVersion": "example.com/v1", "kind": "AddonList", "metadata": {"resourceVersion": "12"}}
ADDON = {"apiVersion": "example.com/v1", "kind": "Addon"}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "addons.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Addon", "plural": "addons", "singular": "addon", "listKind": "AddonList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}
                        },
                    }
                },
            }
        ],
    },
}
UNKNOWN = 'unknown field "spec.nope"'


def addon(name: str, *, is_typed: bool = True, **spec: Any) -> dict[str, Any]:
    return {**(ADDON if is_typed else {}), "metadata": {"name": name}, "spec": spec}


def shapes(item: dict[str, Any], untyped: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every way in which one object can lie in lists. ``untyped``: without a kind, as servers write it."""
    return {
        "List": {**LIST, "items": [item]},
        "of a kind": {**ADDONS, "items": [item]},
        "of a kind, untyped": {**ADDONS, "items": [untyped]},
        "nested": {**LIST, "items": [{**LIST, "items": [{**LIST, "items": [item]}]}]},
        "a kind's in a List": {**LIST, "items": [{**ADDONS, "items": [untyped]}]},
    }


GOOD = shapes(addon("good", size=1), addon("good", is_typed=False, size=1))
BAD = shapes(addon("good", nope=1), addon("good", is_typed=False, nope=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(CRD))
    return tmp_path


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def errors(folder: Path, value: dict[str, Any], *options: Any) -> list[str]:
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump(value))
    result = run("validate", "-o", "json", "--file", folder / "crd.yaml", *options, path)
    found = [each["message"] for one in json.loads(result.stdout)["objects"] for each in one["violations"]]
    assert result.exit_code == bool(found)
    return found


@pytest.mark.parametrize("shape", GOOD)
def test_each_item_is_judged_and_the_list_has_no_faults_of_its_own(shape: str, folder: Path) -> None:
    assert errors(folder, GOOD[shape]) == []
    assert errors(folder, BAD[shape]) == [UNKNOWN]


@pytest.mark.parametrize("shape", BAD)
def test_json_in_lists_names_repeated_fields_of_untyped_items(shape: str, folder: Path) -> None:
    path = folder / "given.json"
    path.write_text(json.dumps(GOOD[shape]).replace('"size": 1', '"size": 1, "size": 2'))
    found = json.loads(run("validate", "-o", "json", "--file", folder / "crd.yaml", path).stdout)["objects"]
    repeated = [each["message"] for one in found for each in one["violations"]]
    assert repeated == ['duplicate field "spec.size"']


@pytest.mark.parametrize("shape", BAD)
def test_library_and_agents_open_lists(shape: str, folder: Path) -> None:
    text = yaml.safe_dump(BAD[shape])
    reports = [each.as_document() for each in validate(build([CRD]).documents, text)]
    library = Library(FileSource(files=[folder / "crd.yaml"]), is_ordered=False)
    for found in (reports, library.validate(text)["objects"]):
        assert [each["message"] for one in found for each in one["violations"]] == [UNKNOWN]


@pytest.mark.parametrize("shape", BAD)
def test_the_service_opens_lists(shape: str) -> None:
    body = json.dumps(BAD[shape]).encode()
    (question,), are_several = questions_in(body, BodyFormat.JSON, Directive.STRICT)
    assert are_several
    assert isinstance(question, ObjectQuestion)
    assert question.kind.kind == "Addon"


@pytest.mark.parametrize("shape", GOOD)
def test_stored_objects_are_found_in_lists_on_both_sides(shape: str, folder: Path) -> None:
    (folder / "old.yaml").write_text(yaml.safe_dump(BAD[shape]))
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump(GOOD[shape]))
    options = ("--file", folder / "crd.yaml", "--old", folder / "old.yaml", "--operation", "update")
    found = json.loads(run("validate", "-o", "json", *options, path).stdout)["objects"]
    assert [each.get("operation") for each in found if each["kind"] == "Addon"] == ["update"]


@pytest.mark.parametrize("shape", BAD)
def test_fields_are_ignored_in_lists(shape: str, folder: Path) -> None:
    assert errors(folder, BAD[shape], "--ignore-field", "Addon:/spec/nope") == []


@pytest.mark.parametrize("shape", BAD)
def test_an_upgrade_judges_every_item(shape: str, folder: Path) -> None:
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump(BAD[shape]))
    crd = folder / "crd.yaml"
    found = json.loads(run("upgrade", "-o", "json", "--from", crd, "--to", crd, path).stdout)["objects"]
    assert [(each["kind"], each["outcome"]) for each in found] == [("Addon", "refused-before")]


def test_definitions_in_lists_define_their_kinds(tmp_path: Path) -> None:
    value = {**LIST, "items": [{**LIST, "items": [CRD]}, addon("bad", nope=1)]}
    (tmp_path / "given.yaml").write_text(yaml.safe_dump(value))
    other = {**CRD, "spec": {**CRD["spec"], "group": "other.com"}, "metadata": {"name": "addons.other.com"}}
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump({**LIST, "items": [{**LIST, "items": [other]}]}))
    options = ("-o", "json", "--file", tmp_path / "crd.yaml", "--skip", "CustomResourceDefinition")
    found = json.loads(run("validate", *options, tmp_path / "given.yaml").stdout)["objects"]
    skipped = {"CustomResourceDefinition"}
    told = [each["message"] for one in found if one["kind"] not in skipped for each in one["violations"]]
    assert told == [UNKNOWN]


def test_faults_around_the_items_are_the_lists(folder: Path) -> None:
    value = {**ADDONS, "items": [addon("good")], "more": 1}
    assert errors(folder, value) == ['unknown field "more"']


def test_an_object_that_is_no_list_of_a_kind_keeps_its_faults_and_hides_no_item(folder: Path) -> None:
    value = {**addon("holder"), "items": [addon("bad", nope=1)]}
    assert errors(folder, value) == ['unknown field "items"', UNKNOWN]


def test_a_list_that_is_nested_too_deeply_is_an_error_at_every_door(folder: Path) -> None:
    value = addon("deep")
    for _ in range(MOST_NESTED):
        value = {**LIST, "items": [value]}
    assert errors(folder, value) == []
    value = {**LIST, "items": [value]}
    assert errors(folder, value) == [TOO_DEEP]
    crd = folder / "crd.yaml"
    assert run("upgrade", "--from", crd, "--to", crd, folder / "given.yaml").exit_code == 5  # not checked
    (question,), _ = questions_in(json.dumps(value).encode(), BodyFormat.JSON, Directive.STRICT)
    assert isinstance(question, ObjectQuestion)
    from specmux_tools.kinds import DocumentSet

    assert Validator(DocumentSet({})).judge(question.body, question.operation).fatal == TOO_DEEP

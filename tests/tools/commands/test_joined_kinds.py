"""A definition among manifests defines its own kind; its group-version's other kinds stay the source's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from shared_data import DATA
from specmux_aggregator.cli import main
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion
from specmux_tools.inputs.validated_objects import Manifest, documents_for
from specmux_tools.mcp.library import Library
from specmux_tools.queries import validate
from specmux_tools.sources.disk.files import FileSource
from specmux_tools.validation.decoding.streams import parts_of

DOORS = ("directory", "file", "server", "library", "agents")


def definition(kind: str, *versions: str, group: str = "pair.example.com", **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [
                {"name": each, "served": True, "storage": not index, "schema": {"openAPIV3Schema": schema}}
                for index, each in enumerate(versions)
            ],
        },
    }


def instance(kind: str, version: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": f"pair.example.com/{version}", "kind": kind}
    return {**head, "metadata": {"name": "one"}, "spec": spec}


STRING = {"type": "string"}
ALPHA = definition("Alpha", "v1", x=STRING)
SOURCE = (definition("Beta", "v1", y=STRING), definition("Alpha", "v1", "v1beta1", old=STRING))


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def errors_through(door: str, folder: Path, given: list[dict[str, Any]], *options: str) -> list[str]:
    """The errors of all objects but definitions."""
    manifests, crds = folder / "manifests.yaml", folder / "crds" / "all.yaml"
    crds.parent.mkdir()
    manifests.write_text(yaml.safe_dump_all(given))
    crds.write_text(yaml.safe_dump_all(SOURCE))
    if door == "library":
        reports = [each.as_document() for each in validate(build(SOURCE).documents, manifests.read_bytes())]
        return list(_errors(reports))
    if door == "agents":
        library = Library(FileSource(directories=[crds.parent]), is_ordered=False)
        return list(_errors(library.validate(manifests.read_text())["objects"]))
    common = ("validate", "-o", "json", *options, manifests)
    if door == "server":
        bodies = {key: json.dumps(each).encode() for key, each in build(SOURCE).documents.items()}
        with serving_in_thread(Reference(bodies)) as server:
            result = run(*common, "--server", server.url, "--cache-directory", folder / "cache")
    else:
        result = run(*common, f"--{door}", crds.parent if door == "directory" else crds)
    return list(_errors(json.loads(result.stdout)["objects"]))


def _errors(reports: list[dict[str, Any]]) -> Iterator[str]:
    for report in reports:
        if report["kind"] != "CustomResourceDefinition":
            yield from (each["message"] for each in report["violations"] if each["severity"] == "error")


@pytest.mark.parametrize("door", DOORS)
def test_a_definition_hides_no_other_kind_of_its_group_version(door: str, tmp_path: Path) -> None:
    given = [ALPHA, instance("Beta", "v1", nope=1), instance("Alpha", "v1", x="1")]
    assert errors_through(door, tmp_path, given) == ['unknown field "spec.nope"']


def test_no_broken_object_is_skipped_for_a_definition_beside_it(tmp_path: Path) -> None:
    given = [ALPHA, instance("Beta", "v1", nope=1)]
    found = errors_through("directory", tmp_path, given, "--ignore-missing-schemas")
    assert found == ['unknown field "spec.nope"']


@pytest.mark.parametrize("door", DOORS)
def test_a_kind_is_its_definitions_in_every_version(door: str, tmp_path: Path) -> None:
    """Applied, the definition serves no v1beta1 any more, and has another field."""
    given = [ALPHA, instance("Alpha", "v1beta1"), instance("Alpha", "v1", old="")]
    gone = 'no kind "Alpha" is registered for version "pair.example.com/v1beta1"'
    assert errors_through(door, tmp_path, given) == [gone, 'unknown field "spec.old"']


def test_a_group_version_is_not_asked_for_where_its_definitions_have_every_kind() -> None:
    own, asked = build([ALPHA]).documents, []

    def load(needed: Collection[GroupVersion]) -> dict[GroupVersion, Any]:
        asked.append(set(needed))
        return {}

    for kind in ("Alpha", "AlphaList", "Beta"):
        data = json.dumps(instance(kind, "v1")).encode()
        documents_for([Manifest("one.json", part) for part in parts_of(data)], own, load)
    assert asked == [{"apis/pair.example.com/v1"}]  # for Beta


def test_a_folder_with_a_document_and_a_definition_of_one_group_version_has_both(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for key, document in build(SOURCE[:1]).documents.items():
        (source / key).parent.mkdir(parents=True)
        (source / f"{key}.json").write_text(json.dumps(document))
    (source / "alpha.yaml").write_text(yaml.safe_dump(ALPHA))
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all([instance("Beta", "v1", nope=1), instance("Alpha", "v1", old="")]))
    found = json.loads(run("validate", "-o", "json", "--directory", source, path).stdout)["objects"]
    assert list(_errors(found)) == ['unknown field "spec.nope"', 'unknown field "spec.old"']


def test_definitions_beside_upgraded_objects_are_taken_by_kind(tmp_path: Path) -> None:
    """The target has Beta alone: Alpha is judged by the definition beside it."""
    target, path = tmp_path / "target.yaml", tmp_path / "objects.yaml"
    target.write_text(yaml.safe_dump(SOURCE[0]))
    path.write_text(yaml.safe_dump_all([ALPHA, instance("Alpha", "v1", x="1"), instance("Beta", "v1")]))
    found = json.loads(run("upgrade", "-o", "json", "--from", target, "--to", target, path).stdout)
    outcomes = {each["kind"]: each["outcome"] for each in found["objects"]}
    assert outcomes["Alpha"] == outcomes["Beta"] == "ready"


def test_a_faulty_definition_of_a_built_in_kind_refuses_no_other_definition() -> None:
    source = FileSource(directories=[DATA / "k8s-pairs" / "1.35" / "v3"])
    faulty = definition("CustomResourceDefinition", "v1", group="apiextensions.k8s.io", x={"type": "nothing"})
    reports = validate(
        source.load([GroupVersion("apis/apiextensions.k8s.io/v1")]).documents.documents,
        yaml.safe_dump_all([faulty, ALPHA]),
    )
    assert [(each.is_valid, each.is_complete) for each in reports] == [(False, True), (True, True)]

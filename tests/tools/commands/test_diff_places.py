"""Where a change stands in a file: line and column for annotations, of the new side, or of the old one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner

from data.compared import definition, document
from specmux_aggregator.cli import main

STRING = {"type": "string"}
OLD = {"type": "object", "properties": {"a": STRING, "b": STRING, "c": {"type": "array", "items": STRING}}}
NEW = {
    "type": "object",
    "properties": {
        "a": {**STRING, "maxLength": 3},
        "c": {"type": "array", "items": {**STRING, "enum": ["x"]}},
    },
}
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)])


def places(*arguments: Any) -> dict[str, Any]:
    """By id of the change."""
    return {
        each["id"]: each["where"] for each in orjson.loads(run(*arguments, "-o", "json").stdout)["changes"]
    }


def line(file: Path, where: dict[str, Any]) -> str:
    return file.read_text().splitlines()[where["line"] - 1][where["column"] - 1 :]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Streams of YAML, and a List."""
    for name, schema in (("old", OLD), ("new", NEW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "crds.yaml").write_text(NAMESPACE + yaml.safe_dump(definition(schema)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_change_is_placed_where_the_new_side_says_it_and_a_removal_where_the_old_one_did(
    folders: Path,
) -> None:
    found = places("old", "new")
    assert found["field-removed"]["file"] == "old/crds.yaml"
    assert line(folders / "old/crds.yaml", found["field-removed"]).startswith("b:")
    assert found["constraint-tightened"]["file"] == "new/crds.yaml"
    assert line(folders / "new/crds.yaml", found["constraint-tightened"]) == "maxLength: 3"
    assert line(folders / "new/crds.yaml", found["enum-added"]) == "enum:"
    pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/c/items/enum"
    assert found["enum-added"]["pointer"] == pointer


@pytest.mark.parametrize("is_json", [True, False])
def test_an_item_of_a_list_is_found(tmp_path: Path, is_json: bool) -> None:
    other = definition(NEW)
    other["metadata"]["name"] = "gizmos.example.com"
    other["spec"]["names"] = {"kind": "Gizmo", "plural": "gizmos"}
    files = []
    for name, schema in (("old", OLD), ("new", NEW)):
        value = {"apiVersion": "v1", "kind": "List", "items": [other, definition(schema)]}
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2) if is_json else yaml.safe_dump(value).encode()
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_bytes(text)
    found = places(*files)
    assert "maxLength" in line(files[1], found["constraint-tightened"])
    text = files[1].read_text()
    assert found["constraint-tightened"]["line"] == text[: text.rindex("maxLength")].count("\n") + 1
    assert line(files[0], found["field-removed"]).startswith(('"b"', "b:"))


def test_a_document_is_followed_through_its_components(tmp_path: Path) -> None:
    there = {"$ref": "#/components/schemas/Shared"}
    files = []
    for name, schema in (("old", OLD), ("new", NEW)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_bytes(orjson.dumps(document(there, {"Shared": schema}), option=orjson.OPT_INDENT_2))
    found = places(*files)
    assert found["field-removed"]["pointer"] == "/components/schemas/Shared/properties/b"
    assert line(files[0], found["field-removed"]).startswith('"b"')
    assert line(files[1], found["constraint-tightened"]).startswith('"maxLength": 3')


def test_annotations_and_sarif_name_file_and_line(folders: Path) -> None:
    found = places("old", "new")["constraint-tightened"]
    assert (
        f"::error file=new/crds.yaml,line={found['line']},col={found['column']},title="
        in run("old", "new", "-o", "github").output
    )
    results = orjson.loads(run("old", "new", "-o", "sarif").stdout)["runs"][0]["results"]
    (result,) = (each for each in results if each["ruleId"] == "constraint-tightened")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "new/crds.yaml"
    assert place["region"] == {"startLine": found["line"], "startColumn": found["column"]}


def test_what_is_no_field_has_a_place_too(tmp_path: Path) -> None:
    old, new = definition(OLD), definition(OLD, subresources={"status": {}})
    new["spec"]["scope"] = "Cluster"
    files = [tmp_path / "old.yaml", tmp_path / "new.yaml"]
    for file, value in zip(files, (old, new), strict=True):
        file.write_text(yaml.safe_dump(value))
    found = places(*files)
    assert line(files[1], found["scope-changed"]) == "scope: Cluster"
    assert line(files[1], found["subresource-added"]).startswith("status:")
    empty = tmp_path / "other.yaml"
    value = definition(OLD)
    value["spec"]["group"] = "example.org"
    empty.write_text(yaml.safe_dump(value))
    found = places(files[0], empty)
    assert (found["group-version-removed"]["file"], found["group-version-added"]["file"]) == (
        str(files[0]),
        str(empty),
    )
    assert found["group-version-removed"]["pointer"] == "/spec/versions/0"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_file_of_a_revision_is_called_as_it_is_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    file = tmp_path / "crds" / "widgets.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(definition(OLD)))
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True)
    file.write_text(yaml.safe_dump(definition(NEW)))
    monkeypatch.chdir(tmp_path)
    for word in ("git:HEAD:crds", "git:HEAD:crds/widgets.yaml", "git:HEAD:"):
        assert places(word, "crds")["field-removed"]["file"] == "crds/widgets.yaml"

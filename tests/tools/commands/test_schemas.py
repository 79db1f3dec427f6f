"""``specmux schemas`` as users run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner, Result

from specmux_converters.errors import ConverterError
from specmux_converters.json_schema.kinds import Kind
from specmux_tools.commands.schemas import schemas


def document(group: str, version: str, *kinds: str) -> dict[str, Any]:
    components = {
        f"{group or 'core'}.{kind}": {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "size": {"type": "integer"},
            },
            "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}],
        }
        for kind in kinds
    }
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    return {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {root: {}},
        "components": {"schemas": components},
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    for group, kinds in (("", ["Pod"]), ("apps.example", ["Thing", "Other"]), ("apps.test", ["Thing"])):
        path = folder / (f"apis/{group}/v1.json" if group else "api/v1.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document(group, "v1", *kinds)))
    return folder


def run(target: Path, source: Path, *options: str) -> Result:
    return CliRunner().invoke(schemas, [str(target), "--directory", str(source), *options])


def test_every_kind_has_its_paths(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out"
    result = run(target, source, "--release", "v1.35.0")
    assert (result.exit_code, result.stderr) == (0, "")
    for path in (
        "core/pod_v1.json",
        "v1/pod_v1.json",
        "apps.example/other_v1.json",
        "all.json",
        "_definitions.json",
        "master-standalone/pod-v1.json",
        "v1.35.0-standalone-strict/other-apps-v1.json",
        "core/list_v1.json",
    ):
        schema = json.loads((target / path).read_bytes())
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    index = json.loads((target / "index.json").read_bytes())
    assert [each["kind"] for each in index["kinds"]] == ["List", "Pod", "Other", "Thing", "Thing"]


def test_two_kinds_at_one_path_are_told_apart_by_their_group(tmp_path: Path, source: Path) -> None:
    run(tmp_path, source)
    both = jsonschema_rs.Draft7Validator(
        json.loads((tmp_path / "master-standalone-strict/thing-apps-v1.json").read_bytes())
    )
    for version, is_known in (("apps.example/v1", True), ("apps.test/v1", True), ("apps.other/v1", False)):
        assert both.is_valid({"apiVersion": version, "kind": "Thing"}) is is_known
    alone = json.loads((tmp_path / "apps.test/thing_v1.json").read_bytes())
    assert alone["properties"]["apiVersion"]["enum"] == ["apps.test/v1"]


def test_what_would_not_change_keeps_its_time(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out"
    run(target, source)
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*.json")}
    changed = document("apps.test", "v1", "Thing")
    changed["components"]["schemas"]["apps.test.Thing"]["description"] = "new"
    (source / "apis/apps.test/v1.json").write_text(json.dumps(changed))
    result = run(target, source)
    assert result.exit_code == 0
    after = {path: path.stat().st_mtime_ns for path in target.rglob("*.json")}
    assert {str(path.relative_to(target)) for path in after if after[path] != before.get(path)} == {
        "all.json", "_definitions.json", "apps.test/thing_v1.json",
        "master-standalone/thing-apps-v1.json", "master-standalone-strict/thing-apps-v1.json",
    }  # fmt: skip


def test_files_of_kinds_that_are_gone_are_removed_and_nothing_else(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out"
    run(target, source)
    (target / "mine.json").write_text("{}")
    (source / "apis/apps.example/v1.json").write_text(json.dumps(document("apps.example", "v1", "Thing")))
    run(target, source, "--kinds", "Thing")
    assert (target / "apps.example/other_v1.json").exists()
    run(target, source)
    result = run(target, source)
    assert "0 written" in result.stdout
    assert (target / "mine.json").exists()
    assert (target / "apps.example/thing_v1.json").exists()


def test_only_some_kinds_and_layouts(tmp_path: Path, source: Path) -> None:
    run(tmp_path / "out", source, "--kinds", "*.apps.test", "--layout", "partial")
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.json")}
    assert found == {"partial/apps.test/thing_v1.json", "index.json", "catalog.json"}


def test_usage(tmp_path: Path, source: Path) -> None:
    assert run(tmp_path, source, "--release", "1.35").exit_code == 2
    (tmp_path / "file").write_text("")
    refused = run(tmp_path / "file", source)
    assert (refused.exit_code, "not a folder" in refused.stderr) == (3, True)


def test_the_merge_schema_of_a_document(tmp_path: Path, source: Path) -> None:
    from specmux_tools.commands.convert import convert

    path = str(source / "api/v1.json")
    as_yaml = CliRunner().invoke(convert, [path, "--to", "smd"])
    as_json = CliRunner().invoke(convert, [path, "--to", "smd-json"])
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)
    assert [each["name"] for each in json.loads(as_json.stdout)["types"]][-1] == "core.Pod"
    (tmp_path / "bad.json").write_text(
        json.dumps(document("", "v1") | {"components": {"schemas": {"A": {"type": "array"}}}})
    )
    refused = CliRunner().invoke(convert, [str(tmp_path / "bad.json"), "--to", "smd"])
    assert refused.exit_code == 3
    assert "A: `items` must be specified on arrays" in refused.stderr


def test_the_layout_of_kustomize_is_one_file(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out"
    result = run(target, source, "--layout", "kustomize")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [path.name for path in target.iterdir()] == ["kustomize.json"]
    definitions = json.loads((target / "kustomize.json").read_bytes())["definitions"]
    assert definitions.keys() == {"core.Pod", "apps.example.Thing", "apps.example.Other", "apps.test.Thing"}
    assert "as it was" in run(target, source, "--layout", "kustomize").stdout
    assert run(target, source, "--layout", "kustomize", "--layout", "grouped").exit_code == 2


def test_the_layout_of_models_is_two_files_of_each_group_version(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out"
    result = run(target, source, "--layout", "models")
    assert (result.exit_code, result.stderr) == (0, "")
    written = {str(path.relative_to(target)) for path in target.rglob("*.json")}
    names = ("core_v1", "apps.example_v1", "apps.test_v1")
    assert written == {
        "index.json",
        *(f"models/{each}{end}" for each in names for end in (".json", ".openapi.json")),
    }
    partial = tmp_path / "partial"
    run(partial, source, "--layout", "partial-models")
    assert {str(path.relative_to(partial)) for path in partial.rglob("*.json")} == {
        each.replace("models", "partial-models") for each in written
    }
    (source / "api/v1.json").unlink()
    assert run(target, source, "--layout", "models").exit_code == 0
    assert not (target / "models/core_v1.json").exists()
    assert (target / "models/apps.test_v1.openapi.json").exists()
    assert run(target, source, "--layout", "models", "--kinds", "Other").exit_code == 0
    kinds = json.loads((target / "models/apps.example_v1.json").read_bytes())["anyOf"]
    assert kinds == [{"$ref": "#/definitions/Other"}]


def test_index_that_names_a_place_elsewhere_removes_nothing(tmp_path: Path, source: Path) -> None:
    target, mine = tmp_path / "schemas", tmp_path / "mine"
    run(target, source)
    mine.mkdir()
    (mine / "notes_v1.json").write_text("{}")
    index = json.loads((target / "index.json").read_text())
    index["kinds"].append({**index["kinds"][0], "group": "../mine", "version": "v1", "kind": "Notes"})
    (target / "index.json").write_text(json.dumps(index))
    assert run(target, source).exit_code == 0
    assert (mine / "notes_v1.json").is_file()


def test_a_kind_that_cannot_be_converted_is_left_out_with_a_code_of_its_own(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object, report: Callable[[Kind, ConverterError], None], **rest: object) -> Any:
        report(Kind("apps.test", "v1", "Thing", "apps.test.Thing"), ConverterError("too deep"))
        return iter(())

    monkeypatch.setattr("specmux_tools.commands.schemas.files", refused)
    for words, code in (((), 5), (("--allow-left-out",), 0)):
        result = run(tmp_path / "out", source, *words)
        assert (result.exit_code, "is left out" in result.output) == (code, True)

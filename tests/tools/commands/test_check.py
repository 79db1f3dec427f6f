"""``specmux check`` as users run it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from converters.crd.widgets import widget
from shared_data import DATA
from specmux_cache.store.disk_store import DiskStore
from specmux_tools.commands.check import check
from specmux_tools.document_checks import results

GOOD: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "1"},
    "paths": {"/apis/apps/v1/": {"get": {"responses": {"200": {"description": "d"}}}}},
}
BAD = {**GOOD, "paths": {"/apis/apps/v1/": {"get": {"responses": 1}}, "/apis/batch/v1/": {}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, document in (("apps/v1", GOOD), ("apps/v2", BAD)):
        file = tmp_path / "documents/apis" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(document))
    return tmp_path / "documents"


def run(tmp_path: Path, *arguments: Any, stdin: bytes = b"") -> Result:
    words = [str(each) for each in (*arguments, "--cache-directory", tmp_path / "cache")]
    return CliRunner().invoke(check, words, input=stdin, catch_exceptions=False)


def test_findings_of_a_folder_as_text(folder: Path, tmp_path: Path) -> None:
    result = run(tmp_path, folder, "--jobs", 2)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[-1].startswith("2 documents: ")
    assert any("[group-version]" in line and "apps/v2.json" in line for line in lines)
    assert any("[schema]" in line for line in lines)
    assert run(tmp_path, folder / "apis/apps/v1.json").stdout == "1 document: 0 errors, 0 warnings, 0 notes\n"


def test_what_was_found_is_kept_by_what_is_in_the_document(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path, folder, "--jobs", 1)
    asked: list[Any] = []
    monkeypatch.setattr(results, "check", lambda *arguments: asked.append(arguments) or ())
    assert run(tmp_path, folder).stdout == first.stdout
    assert asked == []
    one = folder / "apis/apps/v1.json"
    assert run(tmp_path, one, "--no-cache").exit_code == 0
    assert len(asked) == 1
    one.write_bytes(orjson.dumps({**GOOD, "x-changed": 1}))
    run(tmp_path, one)
    assert len(asked) == 2
    with DiskStore.open(tmp_path / "cache") as store:
        for row in list(store.rows()):
            store.put(row.key, b"[[1]]", metadata={})
    run(tmp_path, one)
    assert len(asked) == 3


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("never", 0)])
def test_fail_on(tmp_path: Path, level: str, code: int) -> None:
    swagger = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    lossy = {**swagger, "definitions": {"A": {"type": "integer", "default": 1, "items": [{}]}}}
    assert run(tmp_path, "-", "--fail-on", level, stdin=orjson.dumps(lossy)).exit_code == code


def test_forms_for_programs(folder: Path, tmp_path: Path) -> None:
    rows = orjson.loads(run(tmp_path, folder, "--jobs", 1, "--format", "json").stdout)
    assert [row["document"].endswith(".json") for row in rows] == [True, True]
    assert rows[0]["findings"] == []
    members = {"level", "rule", "pointer", "message", "line", "column"}
    assert members == rows[1]["findings"][0].keys()
    suite = ET.fromstring(run(tmp_path, folder, "--format", "junit").stdout)
    assert suite.get("failures") == "1"
    assert [case.find("failure") is None for case in suite.iter("testcase")] == [True, False]
    sarif = orjson.loads(run(tmp_path, folder, "--format", "sarif").stdout)
    rules = [rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]]
    for result in sarif["runs"][0]["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")


def test_what_cannot_be_checked_fails_unless_it_is_allowed(tmp_path: Path) -> None:
    schemas = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}
    text = orjson.dumps({**GOOD, "components": {"schemas": schemas}})
    assert "[unchecked]" in run(tmp_path, "-", stdin=text).stdout
    assert run(tmp_path, "-", stdin=text).exit_code == 5
    assert run(tmp_path, "-", "--allow-unchecked", stdin=text).exit_code == 0


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run(tmp_path, tmp_path / "empty")
    assert result.exit_code == 3
    assert "empty" in result.stderr


def test_a_release_is_checked_in_no_time_the_second_time(tmp_path: Path) -> None:
    folder = DATA / "k8s-pairs/1.35/v3/apis/batch"
    first = run(tmp_path, folder)
    assert first.exit_code in (0, 5)
    assert run(tmp_path, folder).stdout == first.stdout


def test_a_definition_that_an_apiserver_refuses_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata:\n  name: cron.example.org\n"
        "spec:\n  group: example.org\n  scope: Cluster\n  names: {plural: crons, kind: Cron}\n"
        "  versions:\n"
        "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
    )
    result = run(tmp_path, file)
    assert result.exit_code == 1
    text = 'metadata.name: Invalid value: "cron.example.org": must be spec.names.plural+"."+spec.group'
    assert f"crd.yaml:4:3: error: /metadata/name: cron.example.org: {text} [definition]" in result.stdout


def test_a_definition_is_judged_by_a_release(tmp_path: Path) -> None:
    """By what the release before it knew; findings are kept by release, too."""
    spec = {"type": "integer", "x-kubernetes-validations": [{"rule": "isSemver('1.2.3')"}]}
    file = tmp_path / "crd.json"
    file.write_bytes(orjson.dumps(widget({"type": "object", "properties": {"spec": spec}})))
    assert run(tmp_path, file).exit_code == 0
    refused = run(tmp_path, file, "--release", "1.33")
    assert (refused.exit_code, "undeclared reference to 'isSemver'" in refused.stdout) == (1, True)
    assert run(tmp_path, file, "--release", "v1.34").exit_code == 0
    assert 'no release "1.29"' in run(tmp_path, file, "--release", "1.29").stderr
